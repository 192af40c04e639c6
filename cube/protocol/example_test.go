package protocol_test

import (
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/cube/protocol"
	"github.com/proctor-run/proctor/value"
)

// A server answers with the code, the message and the details of the error that a
// request came to.
func Example() {
	err := fmt.Errorf("reset: %w", protocol.TaskNotFound("ten"))
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		fmt.Println(e.Code, e.Message, value.Repr(e.Details))
	}
	// Output: TASK_NOT_FOUND Task with id 'ten' not found {'task_id': 'ten'}
}
