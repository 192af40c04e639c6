//go:build !linux

package image

func spread(string) {}

func syncTree(string) error { return nil }

func freeBytes(string) (int64, bool) { return 0, false }
