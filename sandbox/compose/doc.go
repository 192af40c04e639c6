// Package compose brings up compose projects on a container engine, as docker
// compose does "up --detach --wait", and is part of backend docker. It needs
// no docker command and no plug-in.
//
// With [sandbox.Spec.Compose] a sandbox is the service main of a project, see
// [Project]. The files are read and merged as the Harbor task format, section
// 5.4, says; keys that are not carried out are refused with file and line, and
// what reaches out of the containers is a warning. All that belongs to a
// project carries the labels of docker compose and those of its sandbox; by
// the latter it is removed, whatever was made of it so far. Networks get small
// subnets of their own choice, see [ParseSubnets].
package compose
