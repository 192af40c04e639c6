// Package dataset brings tasks here that lie elsewhere than in local
// directories: in git repositories, in registry files and in packages.
//
// [Fetch] brings everything that a job's configuration names, into a cache that
// Harbor shares, and says where each task lies and what pins it. It runs git and
// nothing else. The rules are those of the Harbor job format, section 8.
package dataset
