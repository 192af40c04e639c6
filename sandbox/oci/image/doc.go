// Package image gets container images without a daemon and turns them into
// directories that an overlay can be mounted on.
//
// [Open] a store, then [Store.Pull] a reference: the result is an [Image] whose
// Layers are unpacked directories, lowest first, and whose Config says how
// commands in it run. References are
//
//   - a registry reference ("debian:12", "ghcr.io/a/b@sha256:…"), asked first in
//     the mirror layouts of [Options], then in the store, then in the registry;
//   - "oci:DIR[:TAG]", an OCI layout directory;
//   - "docker-archive:FILE[:TAG]", a tar as docker save writes it.
//
// What always holds:
//
//   - Nothing is used before its digest was verified: manifests, configs and
//     layers against the digests that name them, unpacked content against the
//     diff id of the config.
//   - A layer directory appears complete or not at all. What a killed process
//     left half done is removed by the next Open.
//   - Every layer is unpacked once, whatever number of images, callers and
//     processes ask for it.
//   - Unpacking never touches anything outside the layer's own directory, and
//     its use of space and inodes is bounded by [Limits].
//   - A layer that was handed out is not removed before Close, by nobody's Prune.
//
// The store directory is readable by its owner only: layers may hold setuid
// programs of strangers.
//
// Unpacked layers follow the conventions of the Linux overlay file system:
// whiteouts are character devices 0/0, opaque directories carry an extended
// attribute. As root the attributes are trusted.overlay.*, otherwise
// user.overlay.* and the mount needs the option userxattr; [Image.UserXattr]
// says which.
//
// An ordinary user cannot give files away. Then all files of a layer belong to
// that user, which a user namespace shows as root, and [Layer.Notes] counts what
// differs. Device nodes are never created, also not by root, since a runtime
// makes the few that a sandbox needs; they are counted too.
package image
