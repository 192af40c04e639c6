// Package bench measures how fast sandboxes are made, used, brought back and
// removed, on every backend that a program gives it, in one interleaved run.
//
// A [Run] goes round by round, and in each round asks every [Subject] for every
// operation once, beginning with another subject each time: what disturbs the
// machine meanwhile hits all alike. The first round warms up and is not counted.
//
// What is measured is the contract of package sandbox as its callers see it, and
// nothing of the backends' insides. Ratios are to the first subject.
package bench
