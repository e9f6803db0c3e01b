"""Texts within YAML's braces and brackets that hold some themselves: what a reader means by them.

YAML stops at the first such text, as in ``{axis: cuts[0]}``. To report them all at once, their marks are
replaced by others that mean nothing to YAML, one for one, so that every place in the file stays what it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MARKS = ",[]{}:#"
HIDDEN = {ord(mark): chr(0xE000 + index) for index, mark in enumerate(MARKS)}
SHOWN = {ord(hidden): chr(mark) for mark, hidden in HIDDEN.items()}
CLOSING = {"(": ")", "[": "]", "{": "}"}
QUOTED = re.compile(r'"(?:[^"\\\n]|\\.)*"|' + r"'(?:[^'\n]|'')*'")
BLOCK = re.compile(r"(?:^|[:\-] )[ \t]*[|>][-+0-9]*[ \t]*(?:#.*)?$")
VALUE = re.compile(r"(?:^|: |- )\s*(?=[\[{])")
LONGEST = 2000  # characters of a text that is looked for


@dataclass
class Flow:
    """Finds the texts in a file; `spans` are where they begin and end."""

    text: str
    spans: list[tuple[int, int]] = field(default_factory=list)

    def hidden(self) -> str:
        """Return the file with the marks of all such texts hidden."""
        start, indent = 0, -1
        while start < len(self.text):
            end = self.text.find("\n", start)
            end = len(self.text) if end < 0 else end
            line = self.text[start:end]
            depth = len(line) - len(line.lstrip(" "))
            if indent >= 0 and (depth > indent or not line.strip()):
                start = end + 1  # a line of a text that stands as a block
                continue
            indent = depth if BLOCK.search(line) else -1
            start = max(end + 1, self._line(line, start))
        return self._replaced()

    def _replaced(self) -> str:
        parts, last = [], 0
        for begin, end in self.spans:
            parts += [self.text[last:begin], self.text[begin:end].translate(HIDDEN)]
            last = end
        return "".join([*parts, self.text[last:]])

    def _line(self, line: str, start: int) -> int:
        """Look through the braces and brackets that begin on a line; return where they end."""
        found = VALUE.search(line)
        if line.lstrip().startswith("#") or found is None:
            return start
        end = self._collection(start + found.end())
        return start if end is None else end

    def _collection(self, index: int) -> int | None:
        """Look through what begins at a bracket; return the place behind its end, None if it has none."""
        closing = CLOSING[self.text[index]]
        index += 1
        while index < len(self.text):
            character = self.text[index]
            if character == closing:
                return index + 1
            if character in " \t\n,:":
                index += 1
            elif character == "#":
                index = self._behind_line(index)
            else:
                end = self._item(index)
                if end is None:
                    return None
                index = end
        return None

    def _item(self, index: int) -> int | None:
        """Return the place behind one key, value or item."""
        quoted = QUOTED.match(self.text, index)
        if quoted is not None:
            return quoted.end()
        if self.text[index] in "[{":
            known = len(self.spans)
            end = self._collection(index)
            if end is not None and self.text[end : end + 200].lstrip(" \n")[:1] in (
                ",",
                "]",
                "}",
                ":",
                "#",
                "",
            ):
                return end
            del self.spans[known:]  # an expression that begins with a list
        elif self.text[index] in "]}":
            return None
        return self._plain(index)

    def _plain(self, index: int) -> int | None:
        """Return the end of a text without quotes, as its reader sees it; one with marks is noted."""
        begin, open_ = index, ""
        while index < min(len(self.text), begin + LONGEST):
            character = self.text[index]
            quoted = QUOTED.match(self.text, index) if character in "\"'" else None
            if quoted is not None:
                index = quoted.end()
                continue
            if character in CLOSING:
                open_ += CLOSING[character]
            elif open_ and character == open_[-1]:
                open_ = open_[:-1]
            elif not open_ and (character in ",]}" or self._ends_key(index)):
                return self._noted(begin, index)
            index += 1
        return None

    def _ends_key(self, index: int) -> bool:
        pair = self.text[index : index + 2]
        return pair in (": ", ":\n", " #")

    def _noted(self, begin: int, end: int) -> int:
        text = self.text[begin:end].rstrip()
        if any(mark in text for mark in ",[]{}"):
            self.spans.append((begin, begin + len(text)))
        return end

    def _behind_line(self, index: int) -> int:
        end = self.text.find("\n", index)
        return len(self.text) if end < 0 else end
