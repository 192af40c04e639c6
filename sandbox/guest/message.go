package guest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/proctor-run/proctor/sandbox"
	"github.com/proctor-run/proctor/sandbox/internal/frames"
)

// execRequest asks for a command. Env is complete but for HOME and PATH.
type execRequest struct {
	argv   []string
	env    []string
	dir    string
	user   string
	stdin  bool // data frames follow
	stdout bool // standard output is wanted
	stderr bool // standard error is wanted, apart unless merged
	merged bool // standard error goes where standard output goes
	// powerless: the command has no capabilities and cannot gain any.
	powerless bool
}

// everything is the mark of a killRequest that spares nothing but the supervisor.
const everything = ""

// killRequest asks to end processes. mark is for reqKillTree alone.
type killRequest struct {
	mark  string
	grace time.Duration
}

// ownRequest asks for a user to own what is below a directory.
type ownRequest struct {
	dir      string
	uid, gid int
}

// failure says in what way a call failed.
type failure byte

const (
	failNone failure = iota
	failOther
	failNotExist // the path of a download
	failCanceled // by reqCancel
)

// reply ends a call.
type reply struct {
	failure failure
	message string // what failed; without failure: the mark, for reqMark, and why nothing was started, for reqExec
	code    int    // exit code
	killed  bool   // by reqKill; the processes are proven gone unless failure says otherwise
}

// err is the failure of a reply as the contract has it.
func (r reply) err() error {
	switch r.failure {
	case failNone:
		return nil
	case failNotExist:
		return sandbox.ErrNotExist
	default:
		return errors.New(r.message)
	}
}

// maxMessage bounds the text of a reply, so that it fits a frame.
const maxMessage = 8 << 10

const (
	flagStdin = 1 << iota
	flagStdout
	flagStderr
	flagMerged
	flagPowerless
)

func (q execRequest) encode() []byte {
	flags := byte(0)
	for bit, set := range map[byte]bool{flagStdin: q.stdin, flagStdout: q.stdout, flagStderr: q.stderr, flagMerged: q.merged, flagPowerless: q.powerless} {
		if set {
			flags |= bit
		}
	}
	b := []byte{flags}
	b = appendText(b, q.dir)
	b = appendText(b, q.user)
	b = appendTexts(b, q.argv)
	return appendTexts(b, q.env)
}

func decodeExecRequest(payload []byte) (execRequest, error) {
	s := scanner{rest: payload}
	flags := s.byte()
	q := execRequest{
		stdin: flags&flagStdin != 0, stdout: flags&flagStdout != 0,
		stderr: flags&flagStderr != 0, merged: flags&flagMerged != 0, powerless: flags&flagPowerless != 0,
	}
	q.dir, q.user = s.text(), s.text()
	q.argv, q.env = s.texts(), s.texts()
	return q, s.finish("exec request")
}

func (q killRequest) encode() []byte {
	return binary.AppendVarint(appendText(nil, q.mark), int64(q.grace))
}

func decodeKillRequest(payload []byte) (killRequest, error) {
	s := scanner{rest: payload}
	q := killRequest{mark: s.text(), grace: time.Duration(s.varint())}
	return q, s.finish("kill request")
}

func (q ownRequest) encode() []byte {
	return binary.AppendVarint(binary.AppendVarint(appendText(nil, q.dir), int64(q.uid)), int64(q.gid))
}

func decodeOwnRequest(payload []byte) (ownRequest, error) {
	s := scanner{rest: payload}
	q := ownRequest{dir: s.text(), uid: int(int32(s.varint())), gid: int(int32(s.varint()))}
	return q, s.finish("own request")
}

func (r reply) encode() []byte {
	killed := byte(0)
	if r.killed {
		killed = 1
	}
	b := []byte{byte(r.failure), killed}
	b = binary.AppendVarint(b, int64(r.code))
	return appendText(b, r.message[:min(len(r.message), maxMessage)])
}

func decodeReply(payload []byte) (reply, error) {
	s := scanner{rest: payload}
	r := reply{failure: failure(s.byte()), killed: s.byte() != 0}
	r.code = int(int32(s.varint()))
	r.message = s.text()
	return r, s.finish("reply")
}

// encodeProcess is one process of a list.
func encodeProcess(p sandbox.Process) []byte {
	dead := byte(0)
	if p.Dead {
		dead = 1
	}
	b := binary.AppendUvarint([]byte{dead}, uint64(p.PID))
	b = binary.AppendUvarint(b, uint64(p.PPID))
	b = binary.AppendUvarint(b, p.Start)
	return appendText(b, p.Name)
}

// decodeProcesses reads a list of processes.
func decodeProcesses(list []byte) ([]sandbox.Process, error) {
	s := scanner{rest: list}
	var out []sandbox.Process
	for len(s.rest) > 0 && !s.bad {
		p := sandbox.Process{Dead: s.byte() != 0}
		p.PID, p.PPID = int(int32(s.uvarint())), int(int32(s.uvarint()))
		p.Start, p.Name = s.uvarint(), s.text()
		out = append(out, p)
	}
	return out, s.finish("list of processes")
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func appendTexts(b []byte, texts []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(texts)))
	for _, t := range texts {
		b = appendText(b, t)
	}
	return b
}

// scanner reads fields off a payload. After the first field that is not there
// all others are zero, and finish tells.
type scanner struct {
	rest []byte
	bad  bool
}

func (s *scanner) byte() byte {
	if len(s.rest) == 0 {
		s.bad = true
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

func (s *scanner) uvarint() uint64 {
	v, n := binary.Uvarint(s.rest)
	if n <= 0 {
		s.bad, s.rest = true, nil
		return 0
	}
	s.rest = s.rest[n:]
	return v
}

func (s *scanner) varint() int64 {
	v, n := binary.Varint(s.rest)
	if n <= 0 {
		s.bad, s.rest = true, nil
		return 0
	}
	s.rest = s.rest[n:]
	return v
}

func (s *scanner) text() string {
	n := s.uvarint()
	if n > uint64(len(s.rest)) {
		s.bad, s.rest = true, nil
		return ""
	}
	t := string(s.rest[:n])
	s.rest = s.rest[n:]
	return t
}

func (s *scanner) texts() []string {
	n := s.uvarint()
	if n > uint64(len(s.rest)) { // each takes a byte at least
		s.bad, s.rest = true, nil
		return nil
	}
	var texts []string
	for range n {
		if s.bad {
			return nil
		}
		texts = append(texts, s.text())
	}
	return texts
}

func (s *scanner) finish(what string) error {
	if s.bad || len(s.rest) > 0 {
		return fmt.Errorf("%w: malformed %s", frames.ErrProtocol, what)
	}
	return nil
}
