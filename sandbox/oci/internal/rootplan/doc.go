// Package rootplan plans the root file systems of sandboxes: which directories of an
// image, or of this machine, lie in which overlay, and what lies over them.
package rootplan
