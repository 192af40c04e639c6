// Package gitfetch brings directories of git repositories to this machine with
// the git program.
//
// [Fetch] clones a repository without its file contents and history, checks out
// the directories that are wanted at each commit, and hands each to a function
// that takes what it needs. Nothing of the repository is run: no hooks, no
// submodules, no transport but those of [CheckURL], and nobody is asked for a
// password.
package gitfetch
