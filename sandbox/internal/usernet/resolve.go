package usernet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

const (
	// dnsPort is where name servers listen (RFC 1035, section 4.2).
	dnsPort = 53
	// maxQueries of one program's socket are under way at a time; more are lost.
	maxQueries = 32
	// answerLimit is how long one name server has for an answer; then the next
	// is asked. Programs wait five seconds and ask again.
	answerLimit = 2 * time.Second
	// minQuery is a message's header (RFC 1035, section 4.1.1), which begins with
	// the number that the answer has too.
	minQuery, idSize = 12, 2
	// resolveIdle ends the service of a socket that asks nothing any more.
	resolveIdle = 10 * time.Second
)

// resolve passes questions on to the name servers of this machine, and their
// answers back. It reads nothing of either but the number.
func (n *Net) resolve(ctx context.Context, f *flow) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := time.AfterFunc(resolveIdle, cancel)
	defer idle.Stop()
	var asked sync.WaitGroup
	defer asked.Wait()
	free := make(chan struct{}, maxQueries)
	buf := make([]byte, maxDatagram)
	for {
		size, err := f.receive(ctx, buf)
		if err != nil {
			return
		}
		idle.Reset(resolveIdle)
		select {
		case free <- struct{}{}:
		default:
			continue
		}
		query := bytes.Clone(buf[:size])
		asked.Go(func() {
			defer func() { <-free }()
			if answer, err := n.ask(ctx, query); err == nil {
				f.send(answer)
			}
		})
	}
}

// ask asks one name server after the other.
func (n *Net) ask(ctx context.Context, query []byte) ([]byte, error) {
	if len(query) < minQuery {
		return nil, errors.New("a question without a header")
	}
	var errs []error
	for _, server := range n.outside.NameServers() {
		answer, err := n.askOne(ctx, server, query)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(append(errs, errors.New("no name server answers"))...)
}

func (n *Net) askOne(ctx context.Context, server netip.AddrPort, query []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	c, err := n.outside.Dial(ctx, "udp", server)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer func() {
		if stop() {
			_ = c.Close()
		}
	}()
	if _, err := c.Write(query); err != nil {
		return nil, fmt.Errorf("asking %s: %w", server, err)
	}
	answer := make([]byte, maxDatagram)
	for {
		size, err := c.Read(answer)
		if err != nil {
			return nil, fmt.Errorf("asking %s: %w", server, err)
		}
		if size >= minQuery && bytes.Equal(answer[:idSize], query[:idSize]) {
			return bytes.Clone(answer[:size]), nil
		}
	}
}
