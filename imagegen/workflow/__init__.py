"""One page for each verb: the stages that it goes through, from top to bottom.

The only room that knows more than one stage.
"""
