// Package build makes images from Dockerfiles without a daemon: each step that
// changes files runs in a sandbox on the image so far, and what it wrote
// becomes a layer.
//
// Begin with [New] and [Builder.Build]. [Describe] tells without building what a
// Dockerfile says about the commands that run in its image.
//
// # What is supported
//
// The last stage is built, and the stages that it needs, in order. FROM takes
// image names, stages and scratch; --platform must be this machine's. RUN has
// both forms, SHELL, here-documents, --network, and --mount of types bind,
// cache (kept between builds) and tmpfs; secrets and agents that are not required
// are not there. COPY and ADD take files of the context, --from, --chown,
// --chmod with an octal mode, --exclude, --link (of no effect) and
// here-documents; ADD extracts local archives. ENV, ARG, USER, WORKDIR, LABEL,
// CMD and ENTRYPOINT are recorded in the image. EXPOSE, VOLUME, STOPSIGNAL,
// HEALTHCHECK and MAINTAINER mean nothing in a sandbox whose first process is
// not the image's, and are ignored; so is ONBUILD, except in a stage that
// another one begins with. Everything else is an error that names the line and
// wraps sandbox.ErrUnsupported. The meaning of all is that of the Dockerfile
// reference, as BuildKit implements it. Pipes and devices are not copied.
//
// Sandboxes have /dev, /proc, /sys and some /tmp mounted for themselves. What steps copy
// there gets into the image all the same, and what is made to mount on does not.
//
// # What is reused
//
// The result of a step is kept under a key made of the image that it runs on,
// the instruction with its variables, and the content of the files that it
// copies. The finished image is kept under a key of the context's content and
// of the images that it begins with. Concurrent builds of equal keys are one.
package build
