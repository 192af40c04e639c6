// Package runsc is gVisor, as a program that package oci executes. It is a package of its
// own because a kernel takes long to compile and to load: a program that opens sandboxes
// with it should execute another that has it alone, such as command proctor-runsc, and
// say where that is (oci.Options, field GVisor).
package runsc
