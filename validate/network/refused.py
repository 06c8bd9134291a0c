"""Say that a measurement cannot be made as it was asked for."""


class Refused(Exception):
    """Signal that a measurement cannot be made as it was asked for: what, and what to do."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(text)
        self.text, self.hint = text, hint
