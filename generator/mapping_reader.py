"""Reads a mapping file, and the hub's rewrites: keys are checked here, expressions later."""

from __future__ import annotations

from keyword import iskeyword

from caffeforge.generator.diagnostics import Diagnostics
from caffeforge.generator.mapping import (
    Condition,
    ConstraintRule,
    CustomOp,
    MappingFile,
    NetRule,
    PatternRule,
    RewritesFile,
    Rule,
    Shape,
)
from caffeforge.generator.python_text import is_name
from caffeforge.generator.rule_reader import LAYER, LOWERING, OP, RuleForm, RuleReader
from caffeforge.generator.schema_folder import RESERVED_BACKENDS, SCHEMAS
from caffeforge.generator.yaml_reader import CONDITION_KEYS
from caffeforge.generator.yaml_source import Mapping, Node, Scalar, Sequence

TOP_KEYS = ("backend", "extends", "types", "ops", "layers", "patterns", "constraints", "custom", "use", "net")
REWRITES_KEYS = ("fusions", "lowerings", "folds", "impossible")
PATTERN_KEYS = ("match", "rewrite", "let", "require", "when", "optional", "constant", "example", "refused")
CUSTOM_KEYS = ("inputs", "outputs", "attributes", "shape", "open", "torch", "reference")
NET_TYPES = ("in_place", "views", "shared", "takes_in_place", "training", "data")
NET_KEYS = ("input", "loose_tops", *NET_TYPES, "untold", "constraints")


def read_rewrites(root: Mapping, diagnostics: Diagnostics) -> RewritesFile:
    """Return what ``schemas/hub/rewrites.yaml`` says; its mistakes of form go to `diagnostics`."""
    return _Reader(diagnostics).rewrites(root)


def read_own_ops(root: Mapping, diagnostics: Diagnostics) -> list[CustomOp]:
    """Return the ops that ``schemas/hub/ops.yaml`` declares besides ONNX's: those with a dotted name."""
    reader = _Reader(diagnostics)
    own = [reader.custom(key, node) for key, node in root.entries if "." in key.text]
    return [op for op in own if op is not None]


def read_custom(root: Mapping, diagnostics: Diagnostics) -> tuple[CustomOp, ...]:
    """Return the ops that a mapping declares under ``custom:``."""
    return tuple(_Reader(diagnostics).customs(root))


def read(root: Mapping, folder: str, diagnostics: Diagnostics) -> MappingFile:
    """Return what the mapping in `folder` says; its mistakes of form go to `diagnostics`."""
    return _Reader(diagnostics).file(root, folder)


class _Reader(RuleReader):
    def file(self, root: Mapping, folder: str) -> MappingFile:
        self._keys(root, TOP_KEYS)
        result = MappingFile(self._backend(root, folder))
        for key, node in self._entries(root, "types"):
            result.types[key.text] = (key, self._words(node))
        result.ops = self._rules(root, "ops", OP)
        result.layers = self._rules(root, "layers", LAYER)
        read = [rule.name.text for rule in result.layers]
        keys = [key.text for key, _ in self._entries(root, "layers")]
        result.unread = frozenset(key for key in keys if key not in read)
        patterns = [self._pattern(key, node) for key, node in self._entries(root, "patterns")]
        result.patterns = [p for p in patterns if p is not None]
        for key, node in self._entries(root, "constraints"):
            result.constraints.append(ConstraintRule(key, self._limits(node)))
        result.custom = self.customs(root)
        result.net = self._net(root.get("net"))
        return result

    def _limits(self, node: Node) -> tuple[Condition, ...]:
        if isinstance(node, Sequence) and not node.items:
            self.diagnostics.error("no-effect", node.position, "there is no condition in this list")
        return tuple(self._conditions(node, (*CONDITION_KEYS, "source")))

    def _backend(self, root: Mapping, folder: str) -> Scalar:
        given = root.get("backend")
        position = given.position if given is not None else root.position
        text = given.text if isinstance(given, Scalar) else ""
        if not is_name(text) or iskeyword(text) or text in RESERVED_BACKENDS:
            sentence = (
                f"{text!r} is no name for a package" if text else "backend: must give the backend's name"
            )
            hint = f"as 'backend: {folder}'" if is_name(folder) else "letters, digits and underscores"
            self.diagnostics.error("backend-name", position, sentence, hint)
        elif text != folder and (SCHEMAS / text).is_dir():
            sentence = f"{text} is the backend of schemas/{text}, and this is the folder {folder}"
            self.diagnostics.error("backend-name", position, sentence, "give it a name of its own")
        return Scalar(text, position)

    def rewrites(self, root: Mapping) -> RewritesFile:
        self._keys(root, REWRITES_KEYS)
        fusions, folds = (
            [self._pattern(key, node) for key, node in self._entries(root, section)]
            for section in ("fusions", "folds")
        )
        lowerings = self._rules(root, "lowerings", LOWERING)
        impossible = [
            (key, self._text(node, "a sentence")) for key, node in self._entries(root, "impossible")
        ]
        return RewritesFile(
            [fusion for fusion in fusions if fusion is not None],
            lowerings,
            [fold for fold in folds if fold is not None],
            impossible,
        )

    def _rules(self, root: Mapping, section: str, form: RuleForm) -> list[Rule]:
        rules = [self._rule(key, node, form) for key, node in self._entries(root, section)]
        return [rule for rule in rules if rule is not None]

    def _pattern(self, name: Scalar, node: Node) -> PatternRule | None:
        if not isinstance(node, Mapping):
            self._mapping(node)
            return None
        entry = node
        self._keys(entry, PATTERN_KEYS)
        lost = self.lost
        if not is_name(name.text.replace("-", "_")):
            self.lost += 1
            self.diagnostics.error("pattern-name", name.position, "a pattern's name is words joined by '-'")
        match, rewrite, when = (entry.get(k) for k in ("match", "rewrite", "when"))
        if match is None or rewrite is None:
            self.diagnostics.error("pattern-keys", entry.position, "a pattern has match: and rewrite:")
            return None
        optional, constant = (
            self._words(found) if found is not None else ()
            for found in map(entry.get, ("optional", "constant"))
        )
        pattern = PatternRule(
            name,
            self._source(match),
            self._source(rewrite),
            self._let(entry),
            tuple(self._conditions(entry.get("require"), ("expr", "else"))),
            self._source(when) if when is not None else None,
            optional,
            constant,
            entry.get("example"),
            entry.get("refused"),
        )
        return pattern if self.lost == lost else None

    def customs(self, root: Mapping) -> list[CustomOp]:
        found = [self.custom(key, node) for key, node in self._entries(root, "custom")]
        return [op for op in found if op is not None]

    def custom(self, name: Scalar, node: Node) -> CustomOp | None:
        """Return an op that ONNX does not have, None if it is not well formed."""
        entry = self._mapping(node)
        if not isinstance(node, Mapping):
            return None
        self._keys(entry, CUSTOM_KEYS)
        attributes = []
        for key, value in self._entries(entry, "attributes"):
            word = self._word(value, "a type, as 'int = 2',")
            if word is not None:
                attributes.append((key, word))
        torch, reference, outputs, open_ = (entry.get(k) for k in ("torch", "reference", "outputs", "open"))
        results = self._words(outputs) if outputs is not None else (Scalar("Y", name.position),)
        shape, further = self._shapes(entry.get("shape"), results)
        return CustomOp(
            name,
            self._words(entry.get("inputs") or Sequence((), entry.position)),
            results,
            tuple(attributes),
            shape,
            self._word(torch, "the name of a torch op"),
            self._source(reference) if reference is not None else None,
            self._words(open_) if open_ is not None else (),
            further,
        )

    def _shapes(
        self, node: Node | None, outputs: tuple[Scalar, ...]
    ) -> tuple[Shape | None, tuple[tuple[Scalar, Shape], ...]]:
        """Return the shape of the first output, and those that are given of the others, by its name."""
        if not isinstance(node, Mapping):
            return self._shape(node), ()
        found = {}
        for key, value in node.entries:
            shape = self._shape(value)
            if key.text not in [output.text for output in outputs]:
                self.diagnostics.unknown(
                    "custom-shape", key.position, "output", key.text, [output.text for output in outputs]
                )
            elif shape is not None:
                found[key.text] = (key, shape)
        first = found.pop(outputs[0].text, None) if outputs else None
        return first[1] if first is not None else None, tuple(found.values())

    def _shape(self, node: Node | None) -> Shape | None:
        if node is None:
            return None
        return tuple(map(self._source, node.items)) if isinstance(node, Sequence) else self._source(node)

    def _net(self, node: Node | None) -> NetRule:
        if node is None:
            return NetRule()
        entry = self._mapping(node)
        self._keys(entry, NET_KEYS)
        given, loose = entry.get("input"), entry.get("loose_tops")
        layer = None
        if isinstance(given, Mapping):
            self._keys(given, ("layer", "fields"))
            layer = self._layer(given, inner=False)
        elif given is not None and not (isinstance(given, Scalar) and given.text == "fields"):
            self.diagnostics.error("net", given.position, "net input: is 'fields' or a layer with fields")
        found = {key: entry.get(key) for key in NET_TYPES}
        words = {key: self._words(held) for key, held in found.items() if held is not None}
        limits = entry.get("constraints")
        require = self._limits(limits) if limits is not None else ()
        untold = [(key, self._text(why, "a sentence")) for key, why in self._entries(entry, "untold")]
        return NetRule(
            layer, self._word(loose, "a layer type"), **words, untold=tuple(untold), require=require
        )
