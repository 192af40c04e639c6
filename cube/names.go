package cube

import (
	"image"

	"github.com/proctor-run/proctor/cube/infra"
	"github.com/proctor-run/proctor/cube/typed"
	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/value"
)

// The names of packages typed, infra and value that stand in the signatures
// authors write.
type (
	// Typed is a value that crosses process boundaries as JSON with a _type.
	Typed = typed.Typed
	// Map is an ordered map for fields of typed objects.
	Map[T any] = typed.Map[T]
	// ValidationError lists everything that is wrong with a document.
	ValidationError = typed.ValidationError
	// UnknownTypeError reports a _type value that cannot be used.
	UnknownTypeError = typed.UnknownTypeError
	// Presets is a read-only map of canonical configs; see [NewPresets].
	Presets[T Typed] = typed.Presets[T]
	// Image is a picture; see [NewImage].
	Image = typed.Image

	// Container is a running container.
	Container = infra.Container
	// ContainerBackend launches containers.
	ContainerBackend = infra.ContainerBackend
	// ContainerBackendBase has the fields of every backend.
	ContainerBackendBase = infra.ContainerBackendBase
	// ContainerConfig says what container a task needs.
	ContainerConfig = infra.ContainerConfig
	// ExecRequest is a command for a container's shell.
	ExecRequest = infra.ExecRequest
	// ExecResult is how a command ended.
	ExecResult = infra.ExecResult
	// SandboxLauncher is the ability to make one's sandbox oneself.
	SandboxLauncher = infra.SandboxLauncher
	// LocalContainerBackend runs containers as sandboxes.
	LocalContainerBackend = infra.LocalContainerBackend
	// Infra is where resources are provisioned and launched.
	Infra = infra.Infra
)

// Values of untyped slots: what JSON can hold, with ints apart from floats and
// objects in order. A nil Value is null.
type (
	// Value is one of Null, Bool, Int, Float, Str, List and *Object.
	Value = value.Value
	// Null is JSON's null.
	Null = value.Null
	// Bool is true or false.
	Bool = value.Bool
	// Int is an integer of any size.
	Int = value.Int
	// Float is a double.
	Float = value.Float
	// Str is text.
	Str = value.Str
	// List is an array.
	List = value.List
	// Object is an ordered map.
	Object = value.Object
)

// Info is what Reset and Evaluate tell besides the observation and the reward:
// an ordered map of JSON values. Make one with [Pairs]; nil is empty.
type Info = *Object

// link makes subtypes of the data types of this package readable in their slots.
type link = typed.Link

// Package typed finds the links by their method.
var _ = [...]link{Observation{}.link, StepError{}.link, TaskMetadata{}.link, TaskExecutionInfo{}.link}

// TimedOutCode is the exit code of a command whose timeout passed.
const TimedOutCode = infra.TimedOutCode

// Dump returns a typed object as an untyped one; see [typed.Dump].
func Dump(v Typed) (*Object, error) { return typed.Dump(v) }

// Marshal writes a typed object as compact JSON (CUBE, section 1.3).
func Marshal(v Typed) ([]byte, error) { return typed.Marshal(v) }

// Default returns a T whose fields have the defaults of their tags.
func Default[T any]() T { return typed.Default[T]() }

// Upcast returns the B inside sub, for a slot of type *B; see [typed.Upcast].
func Upcast[B any](sub Typed) *B { return typed.Upcast[B](sub) }

// Downcast returns the subtype that a base pointer stands for.
func Downcast[S any](base Typed) (S, bool) { return typed.Downcast[S](base) }

// MapOf returns a map with one entry per key; values are by position.
func MapOf[T any](keys []string, values []T) Map[T] { return typed.MapOf(keys, values) }

// NewImage returns a picture of pixels; it is encoded when it is written.
func NewImage(img image.Image) Image { return typed.NewImage(img) }

// Pairs returns an ordered map from alternating keys and values:
//
//	cube.Pairs("answer", 7, "correct", true)
//
// Values are what [ValueOf] takes. It panics when a key is not a string, a
// value is missing or is nothing that JSON can hold: those are mistakes in the
// program, and a panic in a hook or an action is turned into an error.
func Pairs(keysAndValues ...any) *Object { return typed.Pairs(keysAndValues...) }

// Put gives one key of an object a Go value, at its old place if it has one and
// else at the end:
//
//	cube.Put(info, "answer", 7)
//
// It takes what [Pairs] takes and panics as that does; Object's own Set is for
// values that are one already.
func Put(o *Object, key string, v any) { typed.Put(o, key, v) }

// ValueOf converts a Go value to one of an untyped slot; see [typed.ValueOf].
func ValueOf(v any) (Value, error) { return typed.ValueOf(v) }

// PythonText is Python's str() of a value.
func PythonText(v Value) string { return value.Text(v) }

// NewContainerConfig returns a config of the image with the default resources:
// 2 cores, 4 GB of memory, 10 GB of disk.
func NewContainerConfig(image string) *ContainerConfig { return infra.NewContainerConfig(image) }

// NewLocalContainerBackend returns a backend whose containers are sandboxes.
func NewLocalContainerBackend(b sandbox.Backend) *LocalContainerBackend {
	return infra.NewLocalContainerBackend(b)
}

// SandboxContainer returns a sandbox as a [Container]. Stop destroys it.
func SandboxContainer(sb sandbox.Sandbox) Container { return infra.SandboxContainer(sb) }

// SandboxOf returns the sandbox behind a container, if there is one.
func SandboxOf(c Container) (sandbox.Sandbox, bool) { return infra.SandboxOf(c) }
