// Package value holds values as Python holds them, so that files and numbers
// come out exactly as CPython 3.12 and pydantic 2.13 write them.
//
// Begin with [Decode], which reads JSON the way CPython's json module does, and
// [AppendPydantic] or [AppendDumps], which write it the way pydantic and
// json.dumps do. [Sum], [Div], [Max], [Min] and [RoundHalfEven] are Python's
// arithmetic; [ParseFloat] and [ParseInt] are float(str) and int(str); [Repr] is
// repr().
//
// # Values
//
// A [Value] is one of [Null], [Bool], [Int], [Float], [Str], [List] and
// *[Object]. An int and a float stay different kinds even where they are equal.
// Ints have any size. Objects keep the order of their names. A nil Value counts
// as Null everywhere.
//
// # Text
//
// Python strings may hold lone surrogates, which UTF-8 cannot. Strings are
// therefore WTF-8: UTF-8 in which a lone surrogate is its three-byte
// generalised form (ED A0 80 to ED BF BF). Comparing such strings byte by byte is
// comparing them by code point. A byte that belongs to no WTF-8 sequence is
// written as U+FFFD.
//
// # Errors
//
// What Python reports as an exception is an *[Error] that names the exception;
// test it with errors.Is(err, value.OverflowError).
//
// # Invariants
//
// The package does no input or output and holds no state. No multiplication is
// fused with an addition. Everything terminates in time linear in its input for
// JSON, and no input makes it panic: nesting beyond [MaxDepth] and ints beyond
// [MaxIntDigits] digits are errors.
//
// The rules are those of the reward semantics, sections 2.1, 3, 4, 5.1, 6, 7 and
// 12.1, and of Harbor's result JSON, sections 5.2 and 5.4.
package value
