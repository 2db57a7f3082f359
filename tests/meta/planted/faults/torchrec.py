"""Faults planted into what spreads tables (TorchRec), one place of a training program each."""

from __future__ import annotations

from planted.faults.strategy_fault import StrategyFault

TABLE_FAULTS = (
    StrategyFault(
        "ranks have shards of other tables",
        "torchrec-rows",
        "tables",
        "            if own:",
        "            if own and not rank:",
        "embedding_bag",
    ),
    StrategyFault(
        "tables go through bfloat16 before they are quantised",
        "torchrec-quantised-int8",
        "predict",
        "weight.copy_(bag.weight)",
        "weight.copy_(bag.weight.bfloat16())",
        "embedding_bag",
    ),
    StrategyFault(
        "bags have their neighbours' lengths",
        "torchrec-tables",
        "table",
        "append=torch.tensor([len(rows)]))",
        "append=torch.tensor([len(rows)])).roll(1)",
        "embedding_bag",
    ),
    StrategyFault(
        "results of tables travel in eight bits",
        "torchrec-tables-float16",
        "table",
        "self.inner(bags).values()",
        "self.inner(bags).values().to(torch.float8_e4m3fn).float()",
        "embedding_bag",
    ),
    StrategyFault(
        "tables that are trained on the way back step by half",
        "torchrec-rows-fused",
        "tables",
        'OPTIONS["lr"]',
        'OPTIONS["lr"] / 2',
        "embedding_bag",
    ),
    StrategyFault(
        "bags have other bags' rows",
        "torchrec-bag-rows",
        "table",
        "rows.flatten(), ends",
        "rows.flatten().flip(0), ends",
        "embedding_bag",
    ),
    StrategyFault(
        "devices serve their neighbours' rows",
        "torchrec-devices-int8-float32",
        "predict",
        "part.copy_(rows[: len(part)].view_as(part))",
        "part.copy_(rows[: len(part)].view_as(part).roll(1, 0))",
        "embedding_bag",
    ),
)
