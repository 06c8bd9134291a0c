"""A custom combination of versions: `KEY=VALUE` arguments, the answer, saved requests.

`arguments.parse`, then `answer.answer_to`; `saved` reads and writes request files.
"""
