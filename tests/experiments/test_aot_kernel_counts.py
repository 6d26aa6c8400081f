"""Counting in compiled programs, by hand and in those of this machine's compiler.

None of it needs the compilers of `make count`.
"""

import functools
import json
import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from jaxzero import backend_tuning
from tests.compiling import as_users_have_it

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "experiments"))  # as running a script there does; last, so that it hides nothing

import aot_kernel_counts  # noqa: E402
from bench import against_mctx, hlo, measure  # noqa: E402
from bench.kernel_counts import Count, Counting, Walk, say  # noqa: E402

# Written by hand in the way XLA writes: eight simulations, in each a walk, a choice of branches, copies.
TEXT = """\
HloModule jit_search, is_scheduled=true

FileNames
1 "/somewhere/search.py"
2 "/somewhere/rows.py"

FunctionNames
1 "search"
2 "descend.<locals>.turn"

FileLocations
1 {file_name_id=1 function_name_id=1 line=10 end_line=10 column=2 end_column=9}
2 {file_name_id=2 function_name_id=2 line=20 end_line=20 column=2 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

%twice (p.1: f32[256,128]) -> (f32[256,128], s32[]) {
  %p.1 = f32[256,128]{1,0} parameter(0)
  %constant.9 = s32[] constant(7), metadata={op_name="x" stack_frame_id=1}
  %copied.1 = f32[256,128]{0,1} copy(%p.1)
  %bitcast.9 = f32[256,128]{1,0} bitcast(%copied.1)
  ROOT %both = (f32[256,128]{1,0}, s32[]) tuple(%bitcast.9, %constant.9)
}

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add.9 = f32[] add(%a, %b)
}

%body.walk (w: (s32[], f32[256,128])) -> (s32[], f32[256,128]) {
  %w = (s32[], f32[256,128]{1,0}) parameter(0)
  %depth = s32[] get-tuple-element(%w), index=0
  %rows = f32[256,128]{1,0} get-tuple-element(%w), index=1
  %deeper = s32[] fusion(%depth), kind=kLoop, calls=%sum, metadata={op_name="f/closed_call/body/add" stack_frame_id=2}
  %copy.1 = f32[256,128]{1,0} copy(%rows)
  ROOT %tuple.1 = (s32[], f32[256,128]{1,0}) tuple(%deeper, %copy.1)
}

%going.walk (w.2: (s32[], f32[256,128])) -> pred[] {
  %w.2 = (s32[], f32[256,128]{1,0}) parameter(0)
  %depth.2 = s32[] get-tuple-element(%w.2), index=0
  ROOT %any = pred[] fusion(%depth.2), kind=kLoop, calls=%sum
}

%few (f: f32[256,128]) -> f32[256,128] {
  ROOT %f = f32[256,128]{1,0} parameter(0)
}

%many (m: f32[256,128]) -> f32[256,128] {
  %m = f32[256,128]{1,0} parameter(0)
  %start = (f32[256,128]{1,0}, f32[256,128]{1,0}, u32[]) copy-start(%m)
  %done = f32[256,128]{1,0} copy-done(%start)
  %sorted = f32[256,128]{1,0} sort(%done), dimensions={1}, to_apply=%sum
  ROOT %said = f32[256,128]{1,0} custom-call(%sorted), custom_call_target="Sharding"
}

%five (v: (s32[], f32[8])) -> (s32[], f32[8]) {
  %v = (s32[], f32[8]{0}) parameter(0)
  %i.5 = s32[] get-tuple-element(%v), index=0
  %x.5 = f32[8]{0} get-tuple-element(%v), index=1
  %gemm = f32[8]{0} custom-call(%x.5), custom_call_target="__cublas$gemm"
  ROOT %tuple.5 = (s32[], f32[8]{0}) tuple(%i.5, %gemm)
}

%on (v.2: (s32[], f32[8])) -> pred[] {
  %v.2 = (s32[], f32[8]{0}) parameter(0)
  ROOT %free = pred[] constant(true)
}

%body.simulation (s: (s32[], f32[256,128], f32[8])) -> (s32[], f32[256,128], f32[8]) {
  %s = (s32[], f32[256,128]{1,0}, /*index=2*/f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %tree = f32[256,128]{1,0:T(8,128)S(1)} get-tuple-element(%s), index=1
  %row = f32[8]{0} get-tuple-element(%s), index=2
  %zero = s32[] constant(0)
  %copy.2 = s32[] copy(%zero)
  %tuple.2 = (s32[], f32[256,128]{1,0}) tuple(%copy.2, %tree)
  %while.1 = (s32[], f32[256,128]{1,0}) while(%tuple.2), condition=%going.walk, body=%body.walk
  %pair = (s32[], f32[8]{0}) tuple(%zero, %row)
  %while.2 = (s32[], f32[8]{0}) while(%pair), condition=%on, body=%five, backend_config={"known_trip_count":{"n":"5"}}
  %new = f32[256,128]{1,0} get-tuple-element(%while.1), index=1
  %two = (f32[256,128]{1,0}, s32[]) fusion(%new), kind=kLoop, calls=%twice
  %which = s32[] get-tuple-element(%two), index=1
  %cond.1 = f32[256,128]{1,0} conditional(%which, %new, %new, %new), branch_computations={%few, %many, %few}
  %cond.2 = f32[256,128]{1,0} conditional(%which, %cond.1, %cond.1), true_computation=%few, false_computation=%few
  %row.2 = f32[8]{0} get-tuple-element(%while.2), index=1
  ROOT %tuple.4 = (s32[], f32[256,128]{1,0}, f32[8]{0}) tuple(%i, %cond.2, %row.2)
}

%going.simulation (s.2: (s32[], f32[256,128], f32[8])) -> pred[] {
  %s.2 = (s32[], f32[256,128]{1,0}, f32[8]{0}) parameter(0)
  %i.2 = s32[] get-tuple-element(%s.2), index=0
  %eight = s32[] constant(8)
  ROOT %lt = pred[] compare(%i.2, %eight), direction=LT
}

ENTRY %main (p: (s32[], f32[256,128], f32[8])) -> (s32[], f32[256,128], f32[8]) {
  %p = (s32[], f32[256,128]{1,0}, f32[8]{0}) parameter(0)
  ROOT %while.3 = (s32[], f32[256,128]{1,0}, f32[8]{0}) while(%p), condition=%going.simulation, body=%body.simulation
}
"""
ARRAY = 256 * 128 * 4


def counted(text, simulations, **walk):
    program = hlo.Program(text)
    counting = Counting(program, Walk(**walk))
    return counting, program.simulations(simulations)


@pytest.mark.parametrize("known", [False, True])
def test_a_simulation_by_hand(known):
    # The loop of the simulations is known by its condition, as TPUs' programs have it, or by what XLA says, as GPUs'.
    says = ', backend_config={"known_trip_count":{"n":"8"},"known_init_step":{"init":"0","step":"1"}}'
    text = TEXT.replace("body=%body.simulation", "body=%body.simulation" + says) if known else TEXT
    counting, body = counted(text, 8, nodes=12, levels=8)
    # copy.2; two turns of two kernels and three of the condition; five products; two; copy-start and sort, or nothing
    assert counting.count(body) == Count(
        least=1 + (2 * 2 + 3) + 5 + 1, most=1 + (2 * 2 + 3) + 5 + 1 + 2, waits=3 + 1 + 1, copied=(2 + 1 + 1) * ARRAY
    )
    assert say(counting.count(body)) == "14-16 kernels, 5 waits, 0.52 MB copied"


def test_small_copies_are_kernels_but_no_megabytes():
    counting, body = counted(TEXT, 8, nodes=12, levels=8)
    small = Counting(counting.program, counting.walk, large=ARRAY + 1)
    assert small.count(body).copied == 0 and small.count(body).most == counting.count(body).most


@pytest.mark.parametrize("nodes, levels, turns", [(12, 1, 12), (12, 8, 2), (16, 8, 2), (17, 8, 3), (1, 8, 1)])
def test_turns_of_a_loop_over_a_path(nodes, levels, turns):
    assert Walk(nodes, levels).turns == turns and Walk(nodes, levels, before=1).turns == turns - 1
    counting, _ = counted(TEXT, 8, nodes=nodes, levels=levels)
    walk = next(x for x in counting.computations["body.simulation"] if x.name == "while.1")
    assert counting.count_one(walk) == Count(
        least=2 * turns + turns + 1, most=2 * turns + turns + 1, waits=turns + 1, copied=turns * ARRAY
    )


def test_the_list_says_where_a_kernel_comes_from():
    counting, body = counted(TEXT, 8, nodes=12, levels=8)
    lines = list(counting.listing(body))
    assert lines[0] == "copy.2 of zero  s32[]"
    assert lines[1].startswith("LOOP of 2 iterations (counted for walks") and "7 kernels, 3 waits, 0.26 MB" in lines[1]
    assert lines[2] == "    deeper  s32[]  body/add  [rows.py:20 descend.turn]"
    assert lines[3] == "    copy.1 of rows  f32[256,128]  COPIES 0.13 MB"
    assert "LOOP of 5 iterations (known to XLA): 5 kernels, 0 waits, 0.00 MB copied" in lines
    assert "two  (f32[256,128], s32[])  COPIES 0.13 MB" in lines
    assert "ONE OF 3: 0-2 kernels, 1 waits, 0.13 MB copied" in lines and "  branch 1: 2 kernels, " in "\n".join(lines)
    assert not any("said" in line or "done" in line for line in lines)


@pytest.mark.parametrize("shape, expected", [
    ("f32[]", 4), ("s16[1024,202,75]{2,1,0:T(8,128)(2,1)S(1)}", 2 * 1024 * 202 * 75), ("pred[7]{0}", 7),
    ("(f32[2,3]{1,0}, /*index=1*/u32[5]{0})", 44), ("bf16[3]", 6), ("f8e4m3fn[4]", 4), ("s4[5]", 3), ("token[]", 0),
])  # fmt: skip
def test_bytes_of_shapes(shape, expected):
    assert hlo.size(shape) == expected


def test_a_program_without_that_loop_is_refused():
    with pytest.raises(ValueError, match="no loop of 9 iterations"):
        counted(TEXT, 9)


def compiled(function, *args):
    return jax.jit(function).lower(*args).compile(compiler_options=as_users_have_it()).as_text()


@pytest.mark.optimised
def test_loops_and_branches_of_a_program_of_this_machine():
    def simulation(i, x):
        x = jax.lax.while_loop(lambda x: x[0] < 5, lambda x: jnp.sort(x) + 1, x)  # nobody knows how often
        x = jax.lax.fori_loop(0, 3, lambda j, x: jnp.sort(-x), x)  # three times
        return jax.lax.cond(x[1] > 2, jnp.sort, lambda x: jnp.sort(jnp.sort(x)[::-1] * x), x)

    text = compiled(lambda x: jax.lax.fori_loop(0, 7, simulation, x), jnp.arange(999.0))
    counting, body = counted(text, 7, nodes=10, levels=1)
    kinds = sorted((loop.trips or 0) for loop in counting.program.loops(body))
    assert kinds == [0, 3]
    found = counting.count(body)
    assert found.waits == 10 + 1 + 1
    sorts = re.findall(r"= f32\[999\]\S* (?:sort|custom-call|fusion)\(", text)
    assert len(sorts) >= 5 and found.most > found.least >= 10 + 3 + 1
    more = Counting(counting.program, Walk(nodes=11)).count(body)
    assert more.waits == found.waits + 1 and more.least > found.least


# ------------------------------------------------------------------------------------------- the search, for others
@functools.cache
def traced(rule):
    given = jax.eval_shape(lambda: against_mctx.inputs(16))
    with backend_tuning.laid_out_for(backend_tuning.ACCELERATOR):
        return jax.jit(against_mctx.ours(rule, 24, 7)).trace(*given)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("rule", ["parent_and_siblings", "gumbel"])
def test_the_search_is_lowered_for_devices_that_are_not_there(rule, platform):
    text = traced(rule).lower(lowering_platforms=(platform,)).as_text()
    calls = set(re.findall(r'custom_call @?"?([\w.$]+)', text))
    assert "stablehlo.while" in text and calls <= {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"}


def test_a_simulation_is_few_kernels_and_few_turns():
    # Of this machine's compiler, which fuses less than a GPU's.
    text = traced("parent_and_siblings").lower().compile(compiler_options=as_users_have_it()).as_text()
    counting, body = counted(text, 24, levels=aot_kernel_counts.levels(16), before=1)
    assert [loop.trips for loop in counting.program.loops(body)] == [None, None]  # down, and up
    found = counting.count(body)
    assert found.waits == 3 and found.most <= 130, "\n".join(counting.listing(body))


# --------------------------------------------------------------------------------------------------- as a user calls
@pytest.mark.parametrize("flags, expected", [
    (("--shapes", "64x82"), "games x simulations x actions"), (("--walk", "0"), "at least 1"),
    (("--devices", "h200"), "h100"), (("--devices", "h100"), "`make count` installs it"),
    (("--devices", "tpu-v5e"), "No compiler for tpu-v5e"),
])  # fmt: skip
def test_a_mistake_is_answered_by_what_to_write(flags, expected, monkeypatch, capsys):
    monkeypatch.setattr(aot_kernel_counts, "there", lambda module: False)
    with pytest.raises(SystemExit) as refused:
        aot_kernel_counts.parse(list(flags))
    assert expected in f"{refused.value} {capsys.readouterr().err}"


def test_help_answers_without_jax():
    code = (
        "import sys, aot_kernel_counts\ntry: aot_kernel_counts.parse(['--help'])\nexcept SystemExit: pass\n"
        "assert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "experiments")
    assert done.returncode == 0, done.stderr
    assert "--list" in done.stdout and "1024x200x82" in done.stdout


def test_figures_are_kept_under_the_device_they_were_counted_for(tmp_path, monkeypatch, capsys):
    class Found:
        device_kind = "made up"

    found = type("Topology", (), {"devices": [Found()]})()
    monkeypatch.setattr(aot_kernel_counts, "topology", lambda device: found)
    monkeypatch.setattr(aot_kernel_counts, "compiled", lambda search, batch, device, found, levels: TEXT)
    config = aot_kernel_counts.Config(shapes=("16x8x7",), rules=("gumbel",), output=tmp_path)
    aot_kernel_counts.main(config)
    aot_kernel_counts.main(config)
    first, second = sorted(tmp_path.iterdir(), key=lambda path: len(path.name))
    assert re.fullmatch(r"h100-\d{4}-\d\d-\d\d\.json", first.name) and second.name == first.stem + "-2.json"
    kept = json.loads(first.read_text())
    ours, theirs = kept["rows"]
    assert ours["player"] == "jaxzero" and ours["waits"] == 2 + 2 and theirs["waits"] == 30 + 2
    assert kept["versions"]["jax"] == jax.__version__ and kept["settings"]["walk"] == 29
    assert str(tmp_path) not in first.read_text() and kept["device"] == "made up"
    assert re.search(r"\| +16x8x7 \| gumbel \| jaxzero \| +11-13 \| +4 \|", capsys.readouterr().out)


def test_a_name_of_ones_own_for_a_file(tmp_path):
    assert measure.save({"date": "2026-01-02T03"}, tmp_path, "tpu-v5e").name == "tpu-v5e-2026-01-02.json"
