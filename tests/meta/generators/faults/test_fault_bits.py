"""What faults do to bits, against patterns computed by hand."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from generators.faults import bits
from generators.faults.models import MODELS, PUBLISHED, TILE, strike

# 1.0 is 0 01111111 000… in float32 and bfloat16, 0 01111 0000000000 in float16
ONE = {"float32": 0x3F80_0000, "bfloat16": 0x3F80, "float16": 0x3C00, "float64": 0x3FF0_0000_0000_0000}


@pytest.mark.parametrize("dtype", ONE)
def test_patterns_of_one(dtype: str) -> None:
    values = np.ones(3, bits.dtype_of(dtype))
    assert [int(p) for p in bits.patterns_of(values)] == [ONE[dtype]] * 3
    assert np.array_equal(bits.values_of(bits.patterns_of(values), dtype), values)


@pytest.mark.parametrize(
    ("dtype", "bit", "value"),
    [
        ("float32", 31, -1.0),  # the sign
        ("float32", 30, np.inf),  # the highest bit of the exponent: 0 11111111 000…
        ("float32", 23, 0.5),  # the lowest one
        ("float32", 22, 1.5),
        ("float32", 0, 1 + 2.0**-23),
        ("float16", 15, -1.0),
        ("float16", 14, np.inf),
        ("float16", 10, 0.5),
        ("float16", 9, 1.5),
        ("float16", 0, 1 + 2.0**-10),
        ("bfloat16", 15, -1.0),
        ("bfloat16", 14, np.inf),
        ("bfloat16", 7, 0.5),
        ("bfloat16", 0, 1 + 2.0**-7),
        ("float64", 52, 0.5),
    ],
)
def test_one_bit_of_one(dtype: str, bit: int, value: float) -> None:
    ones = np.ones(2, bits.dtype_of(dtype))
    assert bits.flipped(ones, (bit,)).astype(np.float64).tolist() == [value, value]
    assert bits.flipped(ones, np.array([bit, bit])).astype(np.float64).tolist() == [value, value]


def test_several_bits() -> None:
    assert bits.flipped(np.ones(1, np.float32), (31, 22, 21)).tolist() == [-1.75]
    assert bits.mask_of((31, 0)) == 0x8000_0001
    assert bits.flipped(np.ones(1, np.float32), (30, 22))[0] != bits.flipped(np.ones(1, np.float32), (30, 22))[0]  # NaN


def test_an_operand_of_16_bits() -> None:
    array = np.full(4, 1 + 2.0**-9, np.float32)  # bfloat16 rounds this to 1, float16 keeps it
    for half, ulp in (("bfloat16", 2.0**-7), ("float16", 2.0**-10)):
        found = set()
        for seed in range(400):
            done = strike(MODELS["INPUT_16"], array, np.random.default_rng(seed), half=half)
            found.add(int(done.after[0]))
        start = 1.0 if half == "bfloat16" else 1 + 2.0**-9
        assert len(found) == 16  # each bit once
        values = bits.values_of(np.array(sorted(found), np.uint32), "float32")
        assert {-start, start + ulp} <= set(values.tolist())
        assert np.array_equal(bits.rounded(values, half).astype(np.float32), values, equal_nan=True)
    wide = np.full(64, 1e30, np.float32)
    done = strike(MODELS["N64_WT_16"], wide, np.random.default_rng(0), half="float16")
    assert np.isinf(bits.values_of(done.after, "float32")).all()  # out of float16's range


def test_random_patterns_are_finite_and_of_all_sizes() -> None:
    for dtype in ONE:
        values = bits.random_finite(np.random.default_rng(1), 4000, dtype).astype(np.float64)
        assert np.isfinite(values).all()
        assert len(values) == 4000
        assert (values < 0).mean() == pytest.approx(0.5, abs=0.05)
        assert np.abs(values).max() > 1e4
        assert np.abs(values).min() < 1e-4
        assert (np.abs(values) > 1).mean() == pytest.approx(0.5, abs=0.05)  # exponents are uniform


def test_bfloat16_and_float16_random_values_use_their_own_ranges() -> None:
    narrow = bits.random_finite(np.random.default_rng(0), 1000, "float16")
    assert narrow.dtype == np.float16
    assert bits.random_finite(np.random.default_rng(0), 1000, "bfloat16").dtype == ml_dtypes.bfloat16


def test_the_eighteen_names() -> None:
    names = """INPUT INPUT_16 WT WT_16 RBFLIP RD RD_CORRECT ZERO N16_RD N16_RD_CORRECT RD_GLB RD_CORRECT_GLB
        N64_INPUT N64_WT N64_INPUT_16 N64_WT_16 N64_INPUT_GLB N64_WT_GLB"""
    assert [model.name for model in PUBLISHED] == names.split()


@pytest.mark.parametrize("dtype", ONE)
@pytest.mark.parametrize("name", MODELS)
def test_places_and_values(name: str, dtype: str) -> None:
    """Groups are contiguous and aligned, values are what the model says; what is not struck is none of its business."""
    model, shape = MODELS[name], (3, 8, 8, 80)
    array = np.random.default_rng(2).standard_normal(shape).astype(bits.dtype_of(dtype))
    flat = array.reshape(-1)
    seen = set()
    for seed in range(30):
        done = strike(model, array, np.random.default_rng(seed), size=0.5)
        old, new = bits.values_of(done.before, dtype), bits.values_of(done.after, dtype)
        assert np.array_equal(old, flat[done.places])
        seen.add(int(done.places[0]))
        if model.region:
            expected = 3 * 64 if model.region == "channel" else min(TILE, 8) * TILE
            assert len(done.places) == expected
        else:
            groups, rest = divmod(len(done.places), model.group)
            assert rest == 0
            assert 1 <= groups <= model.most
            assert done.places[0] % model.group == 0
            assert np.array_equal(np.diff(done.places), np.ones(len(done.places) - 1))
        match model.effect:
            case "zero":
                assert (done.after == 0).all()
            case "element":
                taken = bits.rounded(flat, "bfloat16").astype(flat.dtype) if model.half and dtype != "float16" else flat
                assert np.isin(done.after, bits.patterns_of(taken)).all()
            case "random":
                assert np.isfinite(new.astype(np.float64)).all()
            case "bit" | "bits" if not model.half:
                assert [int(a ^ b).bit_count() for a, b in zip(done.before, done.after, strict=True)] == [1]
            case "stuck-0" | "stuck-1":
                (mask,) = {int(done.before.dtype.type(~np.array(done.keep, done.before.dtype)))}
                assert mask.bit_count() == 1
                assert ((done.after & mask) == (mask if model.effect.endswith("1") else 0)).all()
                assert ((done.after ^ done.before) & ~done.before.dtype.type(mask) == 0).all()
            case "relative":
                assert new.astype(np.float64) == pytest.approx(old.astype(np.float64) * 1.5, rel=2.0**-7)
    assert len(seen) > 5


def test_a_run_of_groups_reaches_a_thousand() -> None:
    array = np.arange(64 * 2000, dtype=np.float32)
    sizes = [len(strike(MODELS["N64_WT_GLB"], array, np.random.default_rng(s)).places) for s in range(60)]
    assert max(sizes) > 64 * 800
    assert max(sizes) <= 64_000
    assert min(sizes) < 64 * 100


def test_small_arrays_are_struck_whole() -> None:
    array = np.array([1, 2, 3], np.float32)
    done = strike(MODELS["N16_RD_CORRECT"], array, np.random.default_rng(0))
    assert done.places.tolist() == [0, 1, 2]
    assert all(a != b for a, b in zip(done.before, done.after, strict=True))  # another element of the array
    alone = strike(MODELS["RD_CORRECT"], np.array([7], np.float32), np.random.default_rng(0))
    assert bits.values_of(alone.after, "float32").tolist() == [7.0]


def test_what_cannot_be_struck() -> None:
    with pytest.raises(ValueError, match="without elements"):
        strike(MODELS["ZERO"], np.zeros((0, 3), np.float32), np.random.default_rng(0))
    with pytest.raises(ValueError, match="faults strike float64, float32, float16, bfloat16, not int32"):
        strike(MODELS["ZERO"], np.zeros(3, np.int32), np.random.default_rng(0))
    with pytest.raises(ValueError, match="float16 has bits 0 to 15, not 3 16"):
        strike(MODELS["FLIP"], np.zeros(3, np.float16), np.random.default_rng(0), chosen=(3, 16))
