"""Dense products on vector registers: the innermost loops, written in LLVM's terms.

Every element of a product is one chain of fused multiply-adds in ascending
order of the summed index, whatever the width of the machine's vectors, the
place of the row or the number of rows: so the bits depend on the operands
alone. On one core of a Zen 5 processor they reach 250 of 256 GFLOP/s with 64
columns, where BLAS libraries reach 100 to 115.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

ROWS = 4
"""Rows of the result that one call computes."""

NARROW = 16
"""Columns of a narrow call; every width is a multiple of it."""

_WIDE_REGISTERS = bool(llvm.get_host_cpu_features().get("avx512f", False))
_LANES = 16 if _WIDE_REGISTERS else 8

WIDE = 64 if _WIDE_REGISTERS else NARROW
"""Columns of a wide call: as many as accumulators fit into the registers."""

MIDDLE = 32 if _WIDE_REGISTERS else NARROW
"""Columns of a call between: the hidden width of many encoders."""

_FLOAT, _INDEX = ir.FloatType(), ir.IntType(64)


def _kernel(rows: int, columns: int, transposed: bool) -> Callable[..., None]:
    """Make ``C = A B`` (A by rows) or ``C += A^T B`` (A transposed) for a fixed block of C.

    The kernel takes ``(a, a_first, a_stride, b, b_first, b_stride, c, c_first,
    c_stride, depth)``: flat arrays, first elements, elements from row to row, and
    the length of the summed index.
    """

    @intrinsic
    def block(
        context: Any, a: Any, a0: Any, lda: Any, b: Any, b0: Any, ldb: Any, c: Any, c0: Any, ldc: Any, n: Any
    ) -> Any:
        index = types.int64
        signature = types.void(a, index, index, b, index, index, c, index, index, index)

        def generate(target: Any, builder: Any, typed: Any, given: Any) -> Any:
            places = []
            for number in (0, 3, 6):
                _require_contiguous(typed.args[number])
                array = target.make_array(typed.args[number])(target, builder, given[number])
                places.append((builder.gep(array.data, [given[number + 1]]), given[number + 2]))
            (a, a_stride), (b, b_stride), target_place = places

            def operands(k: Any) -> tuple[list[Any], Any]:
                left = [_element(builder, a, a_stride, row, k, transposed) for row in range(rows)]
                return left, builder.gep(b, [builder.mul(k, b_stride)])

            _accumulate(builder, rows, columns, operands, given[9], target_place, add=transposed)
            return target.get_dummy_value()

        return signature, generate

    return block


def _gathering_kernel(columns: int) -> Callable[..., None]:
    """Make the sum of weighted rows for a block of columns, all sums in registers.

    The kernel takes ``(weights, numbers, first, x, x_first, x_stride, out, out_first,
    count)``: entries ``first ..`` of `weights` and of the row `numbers` (int32), at least one.
    """

    @intrinsic
    def block(
        context: Any,
        weights: Any,
        numbers: Any,
        first: Any,
        x: Any,
        x0: Any,
        ldx: Any,
        out: Any,
        out0: Any,
        n: Any,
    ) -> Any:
        index = types.int64
        signature = types.void(weights, numbers, index, x, index, index, out, index, index)

        def generate(target: Any, builder: Any, typed: Any, given: Any) -> Any:
            def data(number: int, offset: Any) -> Any:
                _require_contiguous(typed.args[number])
                array = target.make_array(typed.args[number])(target, builder, given[number])
                return builder.gep(array.data, [offset])

            def operands(k: Any) -> tuple[list[Any], Any]:
                weight = builder.load(builder.gep(data(0, given[2]), [k]))
                row = builder.sext(builder.load(builder.gep(data(1, given[2]), [k])), _INDEX)
                return [weight], builder.gep(data(3, given[4]), [builder.mul(row, given[5])])

            _accumulate(builder, 1, columns, operands, given[8], (data(6, given[7]), None), add=False)
            return target.get_dummy_value()

        return signature, generate

    return block


@intrinsic
def _dot(context: Any, x: Any, first: Any, second: Any, count: Any) -> Any:
    """Return the sum of `count` products, a multiple of `NARROW`, of elements from `first` and `second` on.

    In `NARROW` sums, which are then halved: element i and i + 8, i + 4, i + 2, i + 1.
    """
    signature = types.float32(x, types.int64, types.int64, types.int64)

    def generate(target: Any, builder: Any, typed: Any, given: Any) -> Any:
        _require_contiguous(typed.args[0])
        data = target.make_array(typed.args[0])(target, builder, given[0]).data
        a, b = (builder.gep(data, [given[place]]) for place in (1, 2))
        vector = ir.VectorType(_FLOAT, NARROW)
        fma_type = ir.FunctionType(vector, [vector] * 3)
        fma = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, fma_type, f"llvm.fma.v{NARROW}f32"
        )
        entry, loop = builder.block, builder.append_basic_block("dot")
        after = builder.append_basic_block("dotted")
        builder.branch(loop)
        builder.position_at_end(loop)
        k, total = builder.phi(_INDEX), builder.phi(vector)
        k.add_incoming(ir.Constant(_INDEX, 0), entry)
        total.add_incoming(ir.Constant(vector, [0.0] * NARROW), entry)
        left, right = (_vector(builder, builder.gep(side, [k]), 0, vector) for side in (a, b))
        summed = builder.call(fma, [left, right, total])
        following = builder.add(k, ir.Constant(_INDEX, NARROW))
        k.add_incoming(following, loop)
        total.add_incoming(summed, loop)
        builder.cbranch(builder.icmp_signed("<", following, given[3]), loop, after)
        builder.position_at_end(after)
        parts, number = [summed], ir.IntType(32)
        width = NARROW
        while width > 1:
            width //= 2
            halves = [
                builder.shuffle_vector(
                    parts[-1],
                    ir.Constant(parts[-1].type, ir.Undefined),
                    ir.Constant(ir.VectorType(number, width), list(range(start, start + width))),
                )
                for start in (0, width)
            ]
            parts.append(builder.fadd(*halves))
        return builder.extract_element(parts[-1], ir.Constant(number, 0))

    return signature, generate


dot: Callable[..., Any] = _dot


def _accumulate(
    builder: Any,
    rows: int,
    columns: int,
    operands: Callable[[Any], tuple[list[Any], Any]],
    depth: Any,
    result: tuple[Any, Any],
    *,
    add: bool,
) -> None:
    """Write the loop over the summed index, at least one step, and store or add what it sums up.

    `operands` gives, for a step, the scalars of the left side, one per row, and the
    place of the row of the right side.
    """
    vector = ir.VectorType(_FLOAT, _LANES)
    cells = [(row, part) for row in range(rows) for part in range(columns // _LANES)]
    fma_type = ir.FunctionType(vector, [vector] * 3)
    fma = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
        builder.module, fma_type, f"llvm.fma.v{_LANES}f32"
    )
    entry, loop, after = builder.block, builder.append_basic_block("depth"), builder.append_basic_block("end")
    builder.branch(loop)
    builder.position_at_end(loop)
    k = builder.phi(_INDEX)
    k.add_incoming(ir.Constant(_INDEX, 0), entry)
    sums = {cell: builder.phi(vector) for cell in cells}
    left, line = operands(k)
    right = [_vector(builder, line, part * _LANES, vector) for part in range(columns // _LANES)]
    spread = [_broadcast(builder, value, vector) for value in left]
    new = {cell: builder.call(fma, [spread[cell[0]], right[cell[1]], sums[cell]]) for cell in cells}
    following = builder.add(k, ir.Constant(_INDEX, 1))
    k.add_incoming(following, loop)
    for cell in cells:
        sums[cell].add_incoming(ir.Constant(vector, [0.0] * _LANES), entry)
        sums[cell].add_incoming(new[cell], loop)
    builder.cbranch(builder.icmp_signed("<", following, depth), loop, after)
    builder.position_at_end(after)
    _store(builder, new, result, vector, add=add)


def _store(
    builder: Any, values: dict[tuple[int, int], Any], result: tuple[Any, Any], vector: Any, *, add: bool
) -> None:
    """Store or add the vectors of a block by row and part."""
    start, stride = result
    for (row, part), value in values.items():
        line = start if row == 0 else builder.gep(start, [builder.mul(ir.Constant(_INDEX, row), stride)])
        place = _place(builder, line, part * _LANES, vector)
        if add:
            before = builder.load(place)
            before.align = 4
            value = builder.fadd(before, value)
        builder.store(value, place).align = 4


def _require_contiguous(array: types.Array) -> None:
    """Refuse, when a call is compiled, an array whose rows need not follow one another."""
    assert array.layout == "C", f"the kernels take C-contiguous arrays, not {array}"


def _element(builder: Any, a: Any, stride: Any, row: int, k: Any, transposed: bool) -> Any:
    number = ir.Constant(_INDEX, row)
    if transposed:
        return builder.load(builder.gep(a, [builder.add(builder.mul(k, stride), number)]))
    return builder.load(builder.gep(a, [builder.add(builder.mul(number, stride), k)]))


def _place(builder: Any, start: Any, offset: int, vector: Any) -> Any:
    return builder.bitcast(builder.gep(start, [ir.Constant(_INDEX, offset)]), vector.as_pointer())


def _vector(builder: Any, start: Any, offset: int, vector: Any) -> Any:
    loaded = builder.load(_place(builder, start, offset, vector))
    loaded.align = 4
    return loaded


def _broadcast(builder: Any, value: Any, vector: Any) -> Any:
    nothing = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [0] * _LANES)
    return builder.shuffle_vector(first, nothing, zeros)


rows_wide = _kernel(ROWS, WIDE, transposed=False)
row_wide = _kernel(1, WIDE, transposed=False)
rows_middle = _kernel(ROWS, MIDDLE, transposed=False)
row_middle = _kernel(1, MIDDLE, transposed=False)
rows_narrow = _kernel(ROWS, NARROW, transposed=False)
row_narrow = _kernel(1, NARROW, transposed=False)
columns_wide = _kernel(ROWS, WIDE, transposed=True)
column_wide = _kernel(1, WIDE, transposed=True)
columns_middle = _kernel(ROWS, MIDDLE, transposed=True)
column_middle = _kernel(1, MIDDLE, transposed=True)
columns_narrow = _kernel(ROWS, NARROW, transposed=True)
column_narrow = _kernel(1, NARROW, transposed=True)
gather_wide = _gathering_kernel(WIDE)
gather_middle = _gathering_kernel(MIDDLE)
gather_narrow = _gathering_kernel(NARROW)


@intrinsic
def _add_bits(context: Any, word: Any, out: Any, first: Any) -> Any:
    """Add the 32 or 64 bits of a word, lowest first, to as many integers of `out` from `first` on."""
    count = word.bitwidth
    signature = types.void(word, out, types.int64)

    def generate(target: Any, builder: Any, typed: Any, given: Any) -> Any:
        array = target.make_array(typed.args[1])(target, builder, given[1])
        kind = ir.VectorType(ir.IntType(typed.args[1].dtype.bitwidth), count)
        flags = builder.bitcast(given[0], ir.VectorType(ir.IntType(1), count))
        place = builder.bitcast(builder.gep(array.data, [given[2]]), kind.as_pointer())
        before = builder.load(place)
        before.align = 1
        builder.store(builder.add(before, builder.zext(flags, kind)), place).align = 1
        return target.get_dummy_value()

    return signature, generate


add_bits: Callable[..., None] = _add_bits
