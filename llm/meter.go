package llm

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/value"
)

// Budget bounds what models may be used for. A field of 0 is no bound.
type Budget struct {
	// USD is in US dollars.
	USD float64
	// Tokens are those of prompts, cached ones too, and of answers.
	Tokens int64
}

// Spent is what calls used.
type Spent struct {
	// Calls are those that were answered.
	Calls int64
	// Prompt includes Cached, see [Usage].
	Prompt, Cached, Completion int64
	// USD is the cost in US dollars.
	USD float64
	// Uncounted are calls whose usage the provider did not tell: it is estimated as a
	// token for four bytes. Unpriced are calls whose cost is not known: it is not in USD.
	Uncounted, Unpriced int64
}

// Tokens are those that count for a budget.
func (s Spent) Tokens() int64 { return s.Prompt + s.Completion }

// tokensText is the number of tokens, which may rest on estimates.
func (s Spent) tokensText() string {
	if s.Uncounted > 0 {
		return fmt.Sprintf("about %d", s.Tokens())
	}
	return strconv.FormatInt(s.Tokens(), 10)
}

// String is the cost, or where that is not known the number of tokens; empty for nothing.
func (s Spent) String() string {
	switch {
	case s.USD > 0 && s.Unpriced == 0:
		return Dollars(s.USD)
	case s.Tokens() > 0:
		return s.tokensText() + " tokens"
	}
	return ""
}

// plus adds up to a bound, so that no sum is ever negative.
func (s Spent) plus(t Spent) Spent {
	return Spent{
		Calls: s.Calls + t.Calls, Prompt: capped(s.Prompt + t.Prompt), Cached: capped(s.Cached + t.Cached),
		Completion: capped(s.Completion + t.Completion), USD: s.USD + t.USD,
		Uncounted: s.Uncounted + t.Uncounted, Unpriced: s.Unpriced + t.Unpriced,
	}
}

// Minus is what was used since t, an earlier state of the same sums.
func (s Spent) Minus(t Spent) Spent {
	return Spent{
		Calls: s.Calls - t.Calls, Prompt: s.Prompt - t.Prompt, Cached: s.Cached - t.Cached, Completion: s.Completion - t.Completion,
		USD: max(0, s.USD-t.USD), Uncounted: s.Uncounted - t.Uncounted, Unpriced: s.Unpriced - t.Unpriced,
	}
}

// maxTokens and maxUSD are the most that is believed of one call, and maxSum bounds sums.
const (
	maxTokens = 1 << 40
	maxUSD    = 1 << 20
	maxSum    = 1 << 60
)

func capped(n int64) int64 { return max(0, min(n, maxSum)) }

// MeterOf is what a meter counts for.
type MeterOf string

// The meters that there are.
const (
	OfTrial MeterOf = "trial"
	OfJob   MeterOf = "job"
)

// BudgetError refuses a call: the budget is used up.
type BudgetError struct {
	Of     MeterOf
	Budget Budget
	Spent  Spent
}

// Error says of which budget how much was spent.
func (e *BudgetError) Error() string {
	var over []string
	if e.Budget.USD > 0 && e.Spent.USD >= e.Budget.USD {
		over = append(over, fmt.Sprintf("%s of %s", Dollars(e.Spent.USD), Dollars(e.Budget.USD)))
	}
	if e.Budget.Tokens > 0 && e.Spent.Tokens() >= e.Budget.Tokens {
		over = append(over, fmt.Sprintf("%s of %d tokens", e.Spent.tokensText(), e.Budget.Tokens))
	}
	return fmt.Sprintf("the budget of the %s is used up: %s spent", e.Of, strings.Join(over, " and "))
}

// ErrorType returns BudgetExceededError.
func (e *BudgetError) ErrorType() string { return exception.BudgetExceededError }

// Dollars writes an amount of US dollars: to the cent, and smaller ones to three digits.
func Dollars(x float64) string {
	decimals := 2
	for y := math.Abs(x); y > 0 && y < 1 && decimals < 12; y *= 10 {
		decimals++
	}
	text := fmt.Sprintf("%.*f", decimals, x)
	for ; decimals > 2 && strings.HasSuffix(text, "0"); decimals-- {
		text = text[:len(text)-1]
	}
	return "$" + text
}

// Meter counts what the calls use that go through it, and refuses calls once its budget is
// used up. Nothing is reserved: a call that began before that ends as it does, so that each
// call under way may go beyond the budget, and no other. Calls that fail or are cut off
// are not counted, since providers do not tell what they cost.
//
// Calls go through [Meter.Wrap]. Those that go another way are asked for with
// [Meter.CheckPrices] and [Meter.Refuse] before they begin, and counted with [Meter.Charge].
//
// It may be used by several goroutines. The zero value counts and refuses nothing.
type Meter struct {
	of     MeterOf
	budget Budget
	parent *Meter
	usedUp chan struct{} // closed when the budget is

	mu    sync.Mutex
	spent Spent
}

// NewMeter makes a meter whose calls count for its parent too, and are refused where that
// would refuse them; nil for none.
func NewMeter(of MeterOf, b Budget, parent *Meter) *Meter {
	return &Meter{of: of, budget: b, parent: parent, usedUp: make(chan struct{})}
}

// Spent is what was used so far.
func (m *Meter) Spent() Spent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spent
}

// UsedUp is closed when the meter's own budget is used up.
func (m *Meter) UsedUp() <-chan struct{} { return m.usedUp }

// Exceeded is how the meter's own budget is used up, nil while it is not.
func (m *Meter) Exceeded() *BudgetError {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.exceeded()
}

// exceeded is Exceeded for those who hold mu.
func (m *Meter) exceeded() *BudgetError {
	b := m.budget
	if b.USD > 0 && m.spent.USD >= b.USD || b.Tokens > 0 && m.spent.Tokens() >= b.Tokens {
		return &BudgetError{Of: m.of, Budget: b, Spent: m.spent}
	}
	return nil
}

// Add counts what was used elsewhere, as by an earlier run.
func (m *Meter) Add(s Spent) {
	for ; m != nil; m = m.parent {
		m.add(s)
	}
}

func (m *Meter) add(s Spent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.exceeded()
	m.spent = m.spent.plus(s)
	if before == nil && m.exceeded() != nil && m.usedUp != nil {
		close(m.usedUp)
	}
}

// Refuse is the error of a call that may not begin now, a [*BudgetError]; nil where it may.
func (m *Meter) Refuse() error {
	for ; m != nil; m = m.parent {
		if err := m.Exceeded(); err != nil {
			return err
		}
	}
	return nil
}

// CheckPrices is the error of a model that may not be called at all, an [*UnpricedError]:
// where there is a budget in dollars, one without prices. A cost that is not known is not
// zero.
func (m *Meter) CheckPrices(model string, prices *Prices) error {
	if prices == nil && m.pays() {
		return &UnpricedError{model}
	}
	return nil
}

// Bounded reports whether there is a budget.
func (m *Meter) Bounded() bool {
	for ; m != nil; m = m.parent {
		if m.budget != (Budget{}) {
			return true
		}
	}
	return false
}

// pays reports whether there is a budget in dollars.
func (m *Meter) pays() bool {
	for ; m != nil; m = m.parent {
		if m.budget.USD > 0 {
			return true
		}
	}
	return false
}

// Wrap returns an opener whose models are counted. It opens none that [Meter.CheckPrices]
// refuses.
func (m *Meter) Wrap(o Opener) Opener {
	return OpenerFunc(func(name string, options Options) (Model, error) {
		model, err := o.Open(name, options)
		if err != nil {
			return nil, err
		}
		if err := m.CheckPrices(name, model.Info().Prices); err != nil {
			return nil, err
		}
		return &metered{model, m}, nil
	})
}

// UnpricedError is that of a model without prices where a budget is in dollars.
type UnpricedError struct {
	// Model is its name.
	Model string
}

// Error says what to do.
func (e *UnpricedError) Error() string {
	return fmt.Sprintf("the prices of model %s are not known, so that a budget in dollars cannot be kept: give them as "+
		`--ak 'model_info={"input_cost_per_token": …, "output_cost_per_token": …}', or give a budget in tokens, --budget-tokens`, e.Model)
}

// ErrorType returns ValueError.
func (e *UnpricedError) ErrorType() string { return exception.ValueError }

// metered is a model whose calls are counted.
type metered struct {
	Model
	meter *Meter
}

// Complete calls the model, unless a budget is used up.
func (m *metered) Complete(ctx context.Context, req *Request) (*Response, error) {
	if err := m.meter.Refuse(); err != nil {
		return nil, err
	}
	resp, err := m.Model.Complete(ctx, req)
	if err == nil && resp != nil {
		m.meter.Add(spentOn(m.Info().Prices, resp.Usage, resp.Cost, func() (prompt, answer int64) {
			return sizeOf(req), sizeOfMessage(&resp.Message)
		}))
	}
	return resp, err
}

// Charge counts a call that was answered, also one whose answer began and was cut: usage and
// cost are what the provider told of it, nil where it did not. A usage that is not known, or
// cannot be right, is estimated from the bytes of the request and of the answer; a cost is
// made of the prices, or stays unknown without them.
func (m *Meter) Charge(prices *Prices, usage *Usage, cost *float64, promptBytes, answerBytes int64) {
	m.Add(spentOn(prices, usage, cost, func() (prompt, answer int64) {
		return max(0, promptBytes), max(0, answerBytes)
	}))
}

// spentOn is what an answer used. size is about how much text there was, in bytes; it is
// asked for only where the usage is not known.
func spentOn(prices *Prices, usage *Usage, cost *float64, size func() (prompt, answer int64)) Spent {
	s := Spent{Calls: 1}
	usage, cost = believable(usage, cost)
	if usage == nil {
		prompt, answer := size()
		usage = &Usage{Prompt: prompt / BytesPerToken, Completion: answer / BytesPerToken}
		s.Uncounted = 1
	}
	s.Prompt, s.Cached, s.Completion = usage.Prompt, usage.Cached, usage.Completion
	switch {
	case cost != nil:
		s.USD = *cost
	case prices != nil:
		s.USD = prices.Cost(*usage)
	default:
		s.Unpriced = 1
	}
	return s
}

// Believable is the response without a usage and a cost that cannot be right: negative
// numbers, more of a prompt from the cache than there is, more tokens or dollars than one
// call can take. With the usage goes the cost, which may have been made of it. Servers are
// not trusted to count.
func (r *Response) Believable() *Response {
	out := *r
	out.Usage, out.Cost = believable(r.Usage, r.Cost)
	return &out
}

// believable is what [Response.Believable] leaves of a usage and a cost.
func believable(u *Usage, cost *float64) (*Usage, *float64) {
	if u != nil && !u.plausible() {
		return nil, nil
	}
	if cost != nil && !(*cost >= 0 && *cost <= maxUSD) { // also NaN
		cost = nil
	}
	return u, cost
}

func (u *Usage) plausible() bool {
	for _, n := range []int64{u.Prompt, u.Completion, u.Cached, u.CacheWrite} {
		if n < 0 || n > maxTokens {
			return false
		}
	}
	return u.Cached+u.CacheWrite <= u.Prompt
}

const (
	// BytesPerToken is how much text a token is taken for where nobody counts.
	BytesPerToken = 4
	// bytesPerImage is as much text as an image is taken for.
	bytesPerImage = 1600 * BytesPerToken
)

// sizeOf is about how much text a request is, in bytes.
func sizeOf(req *Request) int64 {
	var n int64
	for i := range req.Messages {
		n += sizeOfMessage(&req.Messages[i])
	}
	for _, t := range req.Tools {
		n += int64(len(t.Name) + len(t.Description))
		if t.Parameters != nil {
			n += int64(len(value.AppendDumps(nil, t.Parameters, value.DumpsOptions{})))
		}
	}
	return n
}

func sizeOfMessage(m *Message) int64 {
	n := len(m.Reasoning)
	for _, p := range m.Parts {
		n += len(p.Text)
		if p.Image != nil {
			n += bytesPerImage
		}
	}
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	if m.Native != nil {
		n = max(n, len(m.Native.Content))
	}
	return int64(n)
}
