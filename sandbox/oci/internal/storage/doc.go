// Package storage watches how much sandboxes have written, where no file system bounds it.
package storage
