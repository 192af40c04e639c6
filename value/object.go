package value

import "iter"

// indexFrom is the number of members from which an object keeps an index;
// below it, walking the members is faster than hashing.
const indexFrom = 32

// An Object is an ordered map with text keys: a Python dict as JSON has it. The
// zero value is empty and ready. Reading concurrently is safe, changing is not.
type Object struct {
	members []member
	index   map[string]int // position of the first member of each name; nil while small
}

type member struct {
	key   string
	value Value
}

// NewObject returns an empty object with room for n members.
func NewObject(n int) *Object {
	return &Object{members: make([]member, 0, n)}
}

// Len returns the number of members.
func (o *Object) Len() int {
	if o == nil {
		return 0
	}
	return len(o.members)
}

// Get returns the first member with the key.
func (o *Object) Get(key string) (Value, bool) {
	if i := o.find(key); i >= 0 {
		return o.members[i].value, true
	}
	return nil, false
}

// Has reports whether there is a member with the key.
func (o *Object) Has(key string) bool { return o.find(key) >= 0 }

// Set gives the key a value, at its old position if it has one and else at the
// end.
func (o *Object) Set(key string, v Value) {
	if i := o.find(key); i >= 0 {
		o.members[i].value = v
		return
	}
	o.Append(key, v)
}

// Append adds a member at the end even if the key is there already. Harbor writes
// such objects: every nan is a name of its own in reward_stats.
func (o *Object) Append(key string, v Value) {
	o.members = append(o.members, member{key, v})
	o.indexLast()
}

// Delete removes the first member with the key, keeping the order of the rest.
func (o *Object) Delete(key string) {
	i := o.find(key)
	if i < 0 {
		return
	}
	o.members = append(o.members[:i], o.members[i+1:]...)
	o.reindex()
}

// All yields the members in order.
func (o *Object) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if o == nil {
			return
		}
		for _, m := range o.members {
			if !yield(m.key, m.value) {
				return
			}
		}
	}
}

// Keys yields the keys in order.
func (o *Object) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range o.All() {
			if !yield(k) {
				return
			}
		}
	}
}

func (o *Object) find(key string) int {
	if o == nil {
		return -1
	}
	if o.index != nil {
		if i, ok := o.index[key]; ok {
			return i
		}
		return -1
	}
	for i := range o.members {
		if o.members[i].key == key {
			return i
		}
	}
	return -1
}

func (o *Object) indexLast() {
	last := len(o.members) - 1
	switch {
	case o.index != nil:
		if _, known := o.index[o.members[last].key]; !known {
			o.index[o.members[last].key] = last
		}
	case len(o.members) >= indexFrom:
		o.reindex()
	}
}

func (o *Object) reindex() {
	o.index = nil
	if len(o.members) < indexFrom {
		return
	}
	o.index = make(map[string]int, len(o.members))
	for i, m := range o.members {
		if _, known := o.index[m.key]; !known {
			o.index[m.key] = i
		}
	}
}
