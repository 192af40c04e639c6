// Package rootfs puts the root file systems of sandboxes together: overlays of
// image layers or of the host's own files, with small trees of files on top
// that a sandbox has for itself.
package rootfs
