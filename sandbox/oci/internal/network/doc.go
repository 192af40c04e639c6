// Package network says which network a sandbox has, and writes the files by which it
// finds itself and others.
package network
