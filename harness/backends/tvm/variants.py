"""TVM at its highest level for other processors and vectors, through C, with schedules (dlight's, drawn ones), with
layouts, as compiled code in place of bytecode, and on a device behind TVM's RPC. For globs that name them."""

from __future__ import annotations

from dataclasses import replace

from generators.ops.spec import Unsupported
from harness.backends.target import passes
from harness.backends.target.target import Level, Target
from harness.backends.target.text import swapped
from harness.backends.tvm.levels import BEFORE, loads
from harness.backends.tvm.levels import TARGETS as LEVELS

_HIGHEST = next(target for target in LEVELS if target.name == "tvm-O3")
_LLVM = '{"kind": "llvm", "opt-level": 3}'


def variant(
    name: str, *changes: tuple[str, str], before: str = BEFORE[3], cpu: str = "", level: int = 3, symbolic: bool = True
) -> Target:
    """A compiler of its own: tvm-O3 with these passes before the lowering, and with changes in its text. symbolic: does
    it compile symbolic dimensions, too?"""
    static, dynamic = loads(level, before)
    load, dynamic = swapped(static, *changes), swapped(dynamic, *changes) if symbolic else ""
    return replace(
        _HIGHEST,
        name=name,
        load=load,
        symbolic=dynamic,
        level=Level(name, 0),
        sample_every=16,
        cpu=cpu,
        opt_in=True,
        gradient=Unsupported("gradients are asked of tvm-O0 to tvm-O3"),
        switches=passes.tvm(before),
    )


def _llvm(options: str) -> tuple[str, str]:
    return _LLVM, f'{{"kind": "llvm", "opt-level": 3, {options}}}'


_COMPILE = "tvm.compile(bb.get(), target, relax_pipeline=tvm.transform.Sequential(passes))"
_COMPILED = (
    _COMPILE,
    'relax.build(bb.get(), target, relax_pipeline=tvm.transform.Sequential(passes), exec_mode="compiled")',
)

_LAYOUT = BEFORE[3].replace(
    "relax.transform.LegalizeOps()",
    'relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "HWIO"]}),\n        relax.transform.LegalizeOps()',
)
_DLIGHT = BEFORE[3].replace(
    "relax.transform.FuseTIR()",
    "relax.transform.FuseTIR(),\n        dlight.ApplyDefaultSchedule(dlight.cpu.GEMV(), dlight.cpu.Reduction())",
)

_FUSED = "relax.transform.FuseTIR()"
_META = BEFORE[3].replace(_FUSED, f"{_FUSED},\n        scheduled")
_SCHEDULED = '''
    # Each context registers the tensor intrinsics of GPUs and others first, 25 s of work; the rules of LLVM use none.
    sys.modules.setdefault("tvm.s_tir.tensor_intrin", types.ModuleType("tvm.s_tir.tensor_intrin"))
    from tvm.s_tir import meta_schedule

    @tvm.transform.module_pass(opt_level=0)
    def scheduled(mod, _):
        """Each function with the first schedule that meta-schedule draws; as it is where it draws none."""
        cores = tvm.target.Target({"kind": "llvm", "opt-level": 3, "num-cores": 4})
        functions = [(name, f) for name, f in mod.functions.items() if isinstance(f, tvm.tirx.PrimFunc)]
        for seed, (name, function) in enumerate(sorted(functions, key=lambda item: item[0].name_hint), start=1):
            context = meta_schedule.TuneContext(
                tvm.IRModule({"main": function.with_attr("global_symbol", "main")}),
                target=cores,
                space_generator=meta_schedule.space_generator.PostOrderApply(None, "llvm", "llvm", {}),
                search_strategy="replay-func",
                rand_state=seed,
                num_threads=1,
            )
            context.pre_tuning(1, 1, context.generate_design_space())
            for candidate in context.generate_measure_candidates() or []:
                mod.update_func(name, candidate.sch.mod["main"].with_attr("global_symbol", name.name_hint))
        return mod

'''


def _drawn() -> Target:
    """Schedules of meta-schedule, by a worker of its own: its programs change the modules that are imported."""
    target = variant("tvm-O3-meta", ("    target = tvm.", f"{_SCHEDULED[1:]}    target = tvm."), before=_META)
    load = f"import sys\nimport types\n\n{target.load}"
    return replace(
        target, load=load, framework="tvm-meta", modules=(*target.modules, "tvm.s_tir.meta_schedule"), symbolic=""
    )


_MACHINE = "    machine = relax.VirtualMachine(executable, tvm.cpu())\n"
_DEVICE = '''
import json
import os
import tempfile

from tvm import rpc


def device():
    """A session with the device that DISSENT_TVM_DEVICE names, as HOST:PORT/KEY of a tracker, else with a server
    process on this machine. All programs of this process share it."""
    if "kept" not in vars(rpc):
        named = os.environ.get("DISSENT_TVM_DEVICE", "")
        try:
            if named:
                address, key = named.split("/")
                host, port = address.split(":")
                rpc.kept = rpc.connect_tracker(host, int(port)).request(key, session_timeout=3600), None
            else:
                from tvm.rpc.server import Server

                server = Server(host="127.0.0.1", port=9190, port_end=9990, silent=True)
                rpc.kept = rpc.connect("127.0.0.1", server.port), server
        except Exception as error:
            raise ImportError(f"no device behind DISSENT_TVM_DEVICE={named!r} (HOST:PORT/KEY): {error}") from error
    return rpc.kept[0]


def load(parameters):{build}
    remote = device()
    with tempfile.TemporaryDirectory() as folder:
        name = f"{os.path.basename(folder)}.tar"  # of this program alone: a library that is loaded stays what it was
        executable.export_library(f"{folder}/{name}")
        remote.upload(f"{folder}/{name}")
    there = remote.cpu()
    machine = relax.VirtualMachine(remote.load_module(name), there)

    def run(*inputs):
        try:
            machine.set_input("main", *[tvm.runtime.tensor(x, there) for x in inputs])
            machine.invoke_stateful("main")
            return [output.numpy() for output in machine.get_outputs("main")]
        except BaseException:
            del rpc.kept  # it may have died: the next program connects anew
            raise

    return run
'''


def _remote() -> Target:
    """What DISSENT_TVM_TARGET says, as JSON, is what is compiled for."""
    load = loads(3, BEFORE[3])[0]
    build = swapped(load[load.index("\n    bb =") : load.index("\n    def run")], (_MACHINE, ""))
    build = swapped(build, (_LLVM, f"json.loads(os.environ.get('DISSENT_TVM_TARGET', {_LLVM!r}))"))
    text = swapped(_DEVICE, ("{build}", build.rstrip()))
    return replace(
        variant("tvm-O3-rpc"),
        load=text,
        symbolic="",
        framework="tvm-rpc",
        modules=(*_HIGHEST.modules, "tvm.rpc"),
    )


TARGETS = (
    variant("tvm-O3-avx2", _llvm('"mcpu": "x86-64-v3"'), cpu="avx2"),
    variant("tvm-O3-avx512", _llvm('"mcpu": "x86-64-v4", "vector-width": 512'), cpu="avx512f"),
    variant("tvm-O3-vectors", _llvm('"vector-width": 256')),
    *(variant(f"tvm-O3-llvm{level}", (_LLVM, f'{{"kind": "llvm", "opt-level": {level}}}')) for level in (0, 1, 2)),
    replace(
        variant("tvm-O3-c", (f"tvm.target.Target({_LLVM})", 'tvm.target.Target("c")')),
        declines={
            r"InternalError: Unresolved call ir\.Op": "the generator of C has no function for it in this dtype",
            r"error: .half. was not declared in this scope": "the generator of C writes half, which C does not have",
        },
    ),
    variant("tvm-O3-compiled", _COMPILED),
    variant("tvm-O3-layout", before=_LAYOUT),
    variant(
        "tvm-O3-dlight", ("    target = tvm.", "    from tvm.s_tir import dlight\n\n    target = tvm."), before=_DLIGHT
    ),
    _drawn(),
    _remote(),
)
