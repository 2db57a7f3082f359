"""The floors of the house, from the ground up: what stands on one may import from those to its left, and from its own
where no circle comes of it. `*` stands for all that is not named; a folder without a line has one floor.

`__init__` is the folder's own: what it gathers stands to its left, what uses the gathered to its right."""

FLOORS = {
    ".": "generators | oracles | harness | conftest tests",
    "generators": "discovery schema | graph | bounds inputs | ops | graphs | retype union | baits | *",
    "generators/baits": "bait | patterns moved behind spelled | __init__ | cases",
    "generators/baits/patterns": "arithmetic | products | *",
    "generators/bounds": "bounded | *",
    "generators/sweep": "extents neighbours | __init__",
    "generators/ops": (
        "attributes spec slots composed drawing | elementwise | shape | linear | index | reduce | nn"
        " | complex image | otherwise | __init__"
    ),
    "generators/ops/otherwise": "unsaid | relax_spellings | record | * | remaining",
    "generators/training/architectures": "images | dense inception mobile plain residual | named",
    "generators/training": "networks settings | blocks | architectures runs | d3",
    "oracles": (
        "judge decompositions onnx outcomes statistics | determinism spread | questions derivatives quantised models"
        " training | arithmetic"
    ),
    "oracles/judge": "discrepancy outcome reference | compare | verdict",
    "oracles/questions": "forward | cells | *",
    "oracles/decompositions": "composite | expressions | * | derivatives",
    "oracles/derivatives": (
        "complex_pairs accumulation | jacobians rounding | node_jacobians partial_products | gradient"
        " | consistency dynamic jvp | hessian | tangent_tangent"
    ),
    "oracles/arithmetic": "reassociation | *",
    "oracles/onnx": (
        "rule kinds lost order | graph types | exact operators | model rules | expand amplitudes | evaluate | noise"
    ),
    "oracles/onnx/operators": "arguments | *",
    "oracles/quantised": "integers | model | reference_operators | dense | onnx tflite torch | keras tvm",
    "oracles/quantised/tflite": "call | moves | integers real_numbers | kernels | quantiser | *",
    "harness": (
        "execute | dialects | backends | conversions quantisers strategies | questions | findings | search"
        " | training models | studies | commands | __main__"
    ),
    "harness/execute": (
        "files globs install isolation machine reading templates | processes | environments | variables"
        " | pool releases | ranks"
    ),
    "harness/execute/processes": ("worker | rank | zygote | zygotes"),
    "harness/execute/isolation": "confine keeper signals | confinement folders jobs | cluster",
    "harness/dialects": "dialect functions | * | __init__",
    "harness/backends": "target | programs | * | __init__ | probe",
    "harness/conversions": "formats gate | edges external model_file | admit route",
    "harness/conversions/edges": "edge | * | __init__",
    "harness/conversions/gate": "reading | pt2_texts stablehlo | pt2_schema tensorflow_nodes | *",
    "harness/conversions/gate/reading": "refused words protobuf | *",
    "harness/conversions/formats": "format archive | savedmodel | * | __init__",
    "harness/quantisers": "cases | quantiser | * | __init__",
    "harness/strategies": "strategy mixed_precision | * | __init__",
    "harness/questions": "question | * | __init__",
    "harness/findings": "deviation reproducer written database | known store | bisection triage | site upstream",
    "harness/findings/bisection": "search | answers | programs together",
    "harness/findings/database": "migrations tables | opened | recorder | nights | *",
    "harness/findings/triage": "instance severity | reach words | causes",
    "harness/findings/site": "heat highlight hunted past values | pages | sarif summary",
    "harness/findings/upstream": (
        "literals | tidy | own parts | seen | runners | onnx_nodes relax routes | derived quantised | short | issue"
    ),
    "harness/commands/findings": "gather | shown | *",
    "harness/search": "coverage reduce hypothesis_profiles | laboratory | blame dtype_support | campaign | hunting | *",
    "harness/search/hunting": "runs silence suspects | together | *",
    "harness/training": "* | findings table | known_runs share",
    "harness/models": "variants | given | * | results | known report | examine",
    "harness/models/given": "inputs spectra images | audio | *",
    "harness/studies": "datasets drawing | loops | runs | *",
    "harness/studies/datasets": "dataset | * | __init__",
    "harness/studies/loops": "loop | programs | train | draws",
    "harness/studies/runs": "plan history opened | perform | first together",
    "harness/studies/randomness": "protocol | measures | report",
    "harness/studies/seeds": "protocol | report",
    "harness/studies/determinism": "conditions random_operators",
    "harness/studies/overhead": "kernels | measure | report",
    "harness/studies/invariance": "batches network packs | examine | report transformers",
    "harness/studies/errors": "points | measure | report",
    "harness/studies/surface": "cell registry | baits registries scope | trace | table",
    "harness/studies/surface/registries": "onnx tensorflow tflite | * | __init__",
    "harness/studies/conformance": "values | collected | targets | examine | results | page",
    "harness/studies/faults": (
        "guard helpers rows | injection mutation | protocol ranks sensitivity | experiment store | report from_artifact"
    ),
    "harness/studies/distribution": "settings store | protocol | report share",
    "harness/commands": "shared | * | app",
}
