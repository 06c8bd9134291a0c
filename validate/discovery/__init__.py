"""Find out what an image of any maker has, and write it down as an expectation (expected.py).

`infer.inferred` is what others use. `interpreters` chooses the Python that trains, `contents` lists
packages and libraries, `clues` finds components in them, `facts` adds what checks need to know.
"""
