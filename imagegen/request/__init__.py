"""Answer a request for a combination of versions.

Use `arguments.parse`, then `answer.answer_to`; `saved` reads and writes request files.
"""
