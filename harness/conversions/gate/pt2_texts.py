"""Texts in a program of torch.export that torch evaluates, resolves, or puts into generated code."""

from __future__ import annotations

import ast
import json
import keyword
import re
import unicodedata
from typing import Any

from harness.conversions.gate.reading.refused import Refused, parsed, quoted
from harness.conversions.gate.reading.words import listed, words

LONGEST = 20_000
"""Characters of an expression."""
_NAME = re.compile(r"[A-Za-z_]\w{0,2000}", re.ASCII)
_PATH = re.compile(r"(?!__)[\w@:/ -]*(\.(?!__)[\w@:/ -]*)*")
_PLAIN = re.compile(r"[^'\"\\\x00-\x1f\x7f-\x9f\u2028\u2029]*")
_TARGET = re.compile(r"torch\.ops\.(\w+)\.(\w+)(?:\.(\w+))?", re.ASCII)
SCALARS = frozenset(
    [f"_operator.{one}" for one in sorted(words("eq ne le ge lt gt neg pos mul add sub floordiv mod pow truediv"))]
    + [f"_operator.{one}" for one in ("and_", "or_", "lshift", "rshift", "getitem")]
    + ["math.trunc", "math.ceil", "math.floor"]
    + [f"torch.sym_{one}" for one in sorted(words("not int float ite max min sqrt sum"))]
    + ["torch._sym_sqrt"]
)
"""Functions on symbolic numbers (torch._export.serde.serialize._SYM_OPS)."""
HIGHER_ORDER = words(
    """associative_scan auto_functionalized auto_functionalized_v2 cond flex_attention hints_wrapper invoke_subgraph
    map_impl out_dtype scan strict_mode tag_activation_checkpoint while_loop while_loop_stack_output wrap
    wrap_activation_checkpoint wrap_with_autocast wrap_with_set_grad_enabled"""
)
"""Operators that take graphs; those that print, call compiled code, Python functions or assembly are not among them."""
QUANTISED = re.compile(r"(de)?quantize_per_\w+|choose_qparams\w*|fake_quant_per_channel|mixed_mm|convert_element_type")
AFFINE = re.compile(r"(choose_qparams|quantize|dequantize)_affine\w*|choose_scale_float8", re.ASCII)
VISION = words("nms roi_align roi_pool ps_roi_align ps_roi_pool deform_conv2d")
WRAPPERS = re.compile(
    r"torch\._functorch\.predispatch\.(_add_batch_dim|_remove_batch_dim|_vmap_(in|de)crement_nesting"
    r"|lazy_load_decompositions|_unwrap_for_grad|_jvp_(in|de)crement_nesting|_make_dual|_unpack_dual|_enter_dual_level|_exit_dual_level)"
)
FUNCTIONS = words(
    """Symbol Integer Rational Float Add Mul Pow Max Min Abs Eq Ne Lt Le Gt Ge Equality Unequality StrictLessThan
    LessThan GreaterThan StrictGreaterThan And Or Not Xor Piecewise ExprCondPair Tuple ITE floor ceiling exp log sqrt
    sign sin cos tan asin acos atan sinh cosh tanh FloorDiv ModularIndexing Where PythonMod Mod CleanDiv CeilToInt
    FloorToInt CeilDiv LShift RShift PowByNatural FloatPow FloatTrueDiv IntTrueDiv IsNonOverlappingAndDenseIndicator
    TruncToFloat TruncToInt RoundToInt RoundDecimal ToFloat Identity Infinity NegativeInfinity NaN IntInfinity
    NegativeIntInfinity BooleanTrue BooleanFalse OpaqueUnaryFn_sqrt OpaqueUnaryFn_exp OpaqueUnaryFn_log
    OpaqueUnaryFn_sin OpaqueUnaryFn_cos OpaqueUnaryFn_tan OpaqueUnaryFn_tanh BitwiseFn_bitwise_and
    BitwiseFn_bitwise_or"""
)
"""What sympy's srepr and torch's printers write."""
CONSTANTS = words("oo int_oo nan true false inf E pi")
_SYMBOL = re.compile(r"-?[a-z]{1,6}_?\d+(_\d+)*", re.ASCII)
_NUMBER = re.compile(r"-?[\d.]+(e[+-]?\d{1,4})?", re.ASCII)
_ASSUMPTION = re.compile(r"[a-z_]+", re.ASCII)
_POWERS = frozenset({"Pow", "PowByNatural", "FloatPow", "LShift"})
LARGEST_POWER = 64
_STRUCTURE = (
    ast.Expression,
    ast.BoolOp,
    ast.UnaryOp,
    ast.BinOp,
    ast.Compare,
    ast.Load,
    ast.And,
    ast.Or,
    ast.Not,
    ast.USub,
    ast.UAdd,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Mod,
    ast.Pow,
    ast.LShift,
    ast.RShift,
    ast.BitAnd,
    ast.BitOr,
    ast.cmpop,
)
_OF_TENSORS = words("size stride storage_offset dim numel item")
_OF_MATH = words("isnan isinf inf nan pi e floor ceil trunc sqrt exp log sin cos tan tanh sinh cosh asin acos atan")
_IN_GUARDS = FUNCTIONS | words("min max abs int float bool round cast_symbool_to_symint_guardless")
TREES = words(
    """builtins.tuple builtins.list builtins.dict collections.OrderedDict collections.deque torch.Size
    torch.fx.immutable_collections.immutable_list torch.fx.immutable_collections.immutable_dict"""
)
"""Containers whose records name no other type."""
FACTORIES = words("list dict set tuple int float bool str")
"""Of defaultdict, which imports and calls what is named: built-in types alone."""


def name(value: Any, spot: str) -> None:
    """An identifier of generated code."""
    if not isinstance(value, str) or not _NAME.fullmatch(value) or keyword.iskeyword(value):
        raise Refused(f"{spot} is no name: {quoted(value)}")


def name_or_none(value: Any, spot: str) -> None:
    if value != "":
        name(value, spot)


def path(value: Any, spot: str) -> None:
    """Names of submodules with dots between: set and read by attribute, quoted in generated code."""
    if (
        not isinstance(value, str)
        or len(value) > LONGEST
        or not _PATH.fullmatch(value)
        or not unicodedata.is_normalized("NFKC", value)  # Python reads other letters as these
    ):
        raise Refused(f"{spot} is no path of names: {quoted(value)}")


def key(value: Any, spot: str) -> None:
    """A text that torch puts between quotes."""
    if not isinstance(value, str) or len(value) > LONGEST or not _PLAIN.fullmatch(value):
        raise Refused(f"{spot} does not fit between quotes: {quoted(value)}")


def text(value: Any, spot: str) -> None:
    """A text that is quoted properly: an argument of an operator."""
    if not isinstance(value, str) or len(value) > LONGEST:
        raise Refused(f"{spot} is no text: {quoted(value)}")


def device(value: Any, spot: str) -> None:
    if value not in ("cpu", "cuda", "meta", "mps", "xpu"):
        raise Refused(f"{spot} is no device: {quoted(value)}")


def payload(value: Any, spot: str) -> None:
    if not isinstance(value, str) or not re.fullmatch(r"(weight|tensor)_\d+", value, re.ASCII):
        raise Refused(f"{spot} is no file of a tensor: {quoted(value)}")


def operator(value: Any, spot: str) -> None:
    """What torch resolves by attributes, and calls when the model runs."""
    found = _TARGET.fullmatch(value) if isinstance(value, str) else None
    space, function = (found[1], found[2]) if found else ("", "")
    known = (
        value in SCALARS
        or (isinstance(value, str) and bool(WRAPPERS.fullmatch(value)))
        or (space in ("aten", "prims") and function in listed("aten.txt"))
        or (space == "higher_order" and function in HIGHER_ORDER and found is not None and not found[3])
        or (space == "quantized_decomposed" and bool(QUANTISED.fullmatch(function)))
        or (space == "torchao" and bool(AFFINE.fullmatch(function)))
        or (space == "torchvision" and function in VISION)
    )
    if not known:
        raise Refused(f"{spot} is no operator of the list: {quoted(value)}")


def _tree_of(value: Any, spot: str) -> ast.Expression:
    if not isinstance(value, str) or len(value) > LONGEST or not value.isascii() or not value.isprintable():
        raise Refused(f"{spot} is no expression: {quoted(value)}")
    try:
        return ast.parse(value.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise Refused(f"{spot} is no expression: {quoted(value)}") from error


def _number(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, bool | int | float)
        and (isinstance(node.value, float) or abs(node.value) < 2**64)
    )


def _small_power(node: ast.AST, depth: int = 0) -> bool:
    """Does no power become too large to compute?"""
    power = None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow | ast.LShift):
        power = node.right
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _POWERS:
        power = node.args[-1] if node.args else None
    if power is not None:
        depth += 1
        numbers = [one.value for one in ast.walk(power) if isinstance(one, ast.Constant) and not _is_text(one)]
        if depth > 2 or any(abs(one) > LARGEST_POWER for one in numbers if isinstance(one, int | float)):
            return False
    return all(_small_power(child, depth) for child in ast.iter_child_nodes(node))


def _is_text(node: ast.Constant) -> bool:
    return isinstance(node.value, str)


def expression(value: Any, spot: str) -> None:
    """What sympy evaluates: numbers, symbols, arithmetic and the functions of torch."""
    tree = _tree_of(value, spot)

    def known(node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
                return False
            first = node.args[0] if node.args else None
            if node.func.id in ("Symbol", "Float") and isinstance(first, ast.Constant) and _is_text(first):
                rule = _SYMBOL if node.func.id == "Symbol" else _NUMBER
                settings = all(one.arg and _ASSUMPTION.fullmatch(one.arg) for one in node.keywords)
                numbers = all(_number(one.value) for one in node.keywords)
                return bool(rule.fullmatch(str(first.value))) and settings and numbers and len(node.args) == 1
            return all(map(known, node.args)) and all(one.arg == "evaluate" for one in node.keywords)
        if isinstance(node, ast.Name):
            return bool(_SYMBOL.fullmatch(node.id)) or node.id in CONSTANTS
        if isinstance(node, ast.Constant):
            return _number(node)
        if isinstance(node, ast.Tuple):
            return all(map(known, node.elts))
        return isinstance(node, _STRUCTURE) and all(map(known, ast.iter_child_nodes(node)))

    if not known(tree) or not _small_power(tree):
        raise Refused(f"{spot} is no expression of symbols: {quoted(value)}")


def guard(value: Any, spot: str) -> None:
    """What torch writes into a function that checks the inputs: comparisons of sizes and numbers."""
    tree = _tree_of(value, spot)

    def source(node: ast.AST) -> bool:
        """A value of the inputs: L['x'], L['x'][0], L['x'].field."""
        if isinstance(node, ast.Subscript):
            return source(node.value) and isinstance(node.slice, ast.Constant) and constant(node.slice)
        if isinstance(node, ast.Attribute):
            return source(node.value) and not node.attr.startswith("_")
        return isinstance(node, ast.Name) and node.id == "L"

    def constant(node: ast.Constant) -> bool:
        if isinstance(node.value, str):
            return bool(_PLAIN.fullmatch(node.value))
        return node.value is None or _number(node)

    def called(node: ast.Call) -> bool:
        if node.keywords or not all(map(known, node.args)):
            return False
        match node.func:
            case ast.Name(id=function):
                return function in _IN_GUARDS
            case ast.Attribute(value=ast.Name(id="math"), attr=function):
                return function in _OF_MATH
            case ast.Attribute(value=ast.Name(id="torch"), attr=function):
                return f"torch.{function}" in SCALARS
            case ast.Attribute(value=owner, attr=method):
                return method in _OF_TENSORS and source(owner) and len(node.args) <= 1
        return False

    def known(node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp | ast.BoolOp | ast.Call) and any(
            isinstance(one, ast.Constant) and _is_text(one) for one in ast.iter_child_nodes(node)
        ):
            return False  # a text is compared, and neither repeated nor joined
        match node:
            case ast.Call():
                return called(node)
            case ast.Constant():
                return constant(node)
            case ast.Attribute(value=ast.Name(id="math"), attr=constant_of_math):
                return constant_of_math in ("inf", "nan", "pi", "e")
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant() as index):
                return called(call) and _number(index)
            case ast.Subscript() | ast.Attribute():
                return source(node)
            case ast.Name(id=found):
                return found in CONSTANTS
        return isinstance(node, _STRUCTURE) and all(map(known, ast.iter_child_nodes(node)))

    if "#" in value or "\\" in value or not known(tree) or not _small_power(tree):
        raise Refused(f"{spot} is no guard on inputs: {quoted(value)}")


def tree(value: Any, spot: str) -> None:
    """How inputs or outputs are nested: containers of Python alone; keys are quoted in generated code."""
    if value == "":
        return
    if not isinstance(value, str):
        raise Refused(f"{spot} is no text: {quoted(value)}")
    told = parsed(value, spot)
    if not isinstance(told, list) or len(told) != 2:
        raise Refused(f"{spot} is no tree: {quoted(value)}")
    _branch(told[1], spot)
    match told[1]:
        case {"type": "builtins.tuple", "children_spec": [_, {"type": "builtins.dict", "context": str(names)}]}:
            if spot.endswith("in_spec"):
                for one in json.loads(names) or ():
                    name(one, f"an argument of {spot}")


def _branch(told: Any, spot: str) -> None:
    if not isinstance(told, dict) or set(told) != {"type", "context", "children_spec"}:
        raise Refused(f"{spot} is no tree: {quoted(told)}")
    context = told["context"]
    if told["type"] == "collections.defaultdict":
        context = _keys_of_defaultdict(context, spot)
    elif told["type"] is not None and told["type"] not in TREES:
        raise Refused(f"{spot} names the type {quoted(told['type'])}")
    if context is not None:
        found = parsed(context, spot) if isinstance(context, str) else context
        for one in found if isinstance(found, list) else [found]:
            if isinstance(one, str):
                key(one, f"a key of {spot}")
            elif not (one is None or isinstance(one, bool | int | float)):
                raise Refused(f"{spot} has a container made of {quoted(one)}")
    if not isinstance(told["children_spec"], list):
        raise Refused(f"{spot} is no tree: {quoted(told)}")
    for child in told["children_spec"]:
        _branch(child, spot)


def _keys_of_defaultdict(context: Any, spot: str) -> Any:
    match parsed(context, spot) if isinstance(context, str) else context:
        case {
            "default_factory_module": "builtins",
            "default_factory_name": str(factory),
            "dict_context": list(keys),
            **rest,
        } if factory in FACTORIES and not rest:
            return keys
    raise Refused(f"{spot} has a defaultdict made by {quoted(context)}")


_METADATA = words("stack_trace nn_module_stack source_fn_stack torch_fn custom from_node")
_FUNCTION = re.compile(r"[\w<>-]*(\.[\w<>-]+)*", re.ASCII)
_MODULES = words("os sys io subprocess shutil builtins importlib pickle ctypes socket serialization hub")


def metadata(value: Any, spot: str) -> None:
    """Where a node comes from. Names of functions in it are resolved by attributes."""
    if not isinstance(value, dict):
        raise Refused(f"{spot} is no dictionary: {quoted(value)}")
    for kind, told in value.items():
        here = f"{spot}.{kind[:60]}"
        if kind not in _METADATA or not isinstance(told, str):
            raise Refused(f"{here} is not known: {quoted(told)}")
        if any(not char.isprintable() and char not in "\n\t" for char in told):
            raise Refused(f"{here} has characters that do not print: {quoted(told)}")
        if kind in ("custom", "from_node"):
            parsed(told, here)
        if kind == "source_fn_stack":
            for one in told.split(";"):
                function = one.partition(",")[2]
                if not _FUNCTION.fullmatch(function) or _MODULES & set(function.split(".")):
                    raise Refused(f"{here} names the function {quoted(function)}")
