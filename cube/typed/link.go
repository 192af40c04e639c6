package typed

import "reflect"

// Link lets a pointer to a base type stand for a value of a subtype. A slot of
// type *Observation holds the address of the Observation inside a subtype's
// struct, and the link in it leads back to the whole. It is only believed when
// the whole contains exactly this base, so that copies of a base do not claim
// to be what they were copied from.
type Link struct{ outer any }

func (l *Link) subtypeLink() *Link { return l }

type linked interface{ subtypeLink() *Link }

// Upcast returns the B inside sub, a pointer to a struct that embeds B, for a
// slot of type *B. What is written from the slot then are all fields of sub:
//
//	out.Obs = typed.Upcast[cube.Observation](&MyObservation{…})
//
// It returns nil when sub does not embed B. Slots of interface type take
// subtypes as they are.
func Upcast[B any](sub Typed) *B {
	whole := reflect.ValueOf(sub)
	base, ok := embeddedIn(whole, reflect.TypeFor[B]())
	if !ok {
		return nil
	}
	if l, ok := base.Interface().(linked); ok && base.Pointer() != whole.Pointer() || ok && base.Type() != whole.Type() {
		l.subtypeLink().outer = sub
	}
	return base.Interface().(*B)
}

// Downcast returns the subtype that a base pointer stands for: after
// [Upcast] or reading, the S around base. It also accepts base itself.
func Downcast[S any](base Typed) (S, bool) {
	s, ok := outermost(reflect.ValueOf(base)).Interface().(S)
	return s, ok
}

// outermost follows the link of a base to the value around it.
func outermost(ptr reflect.Value) reflect.Value {
	l, ok := ptr.Interface().(linked)
	if !ok || l.subtypeLink().outer == nil {
		return ptr
	}
	whole := reflect.ValueOf(l.subtypeLink().outer)
	base, ok := embeddedIn(whole, ptr.Type().Elem())
	if !ok || base.Pointer() != ptr.Pointer() {
		return ptr
	}
	return whole
}

// embeddedIn returns the address of the struct of type base that whole, a
// pointer to a struct, embeds at any depth or is.
func embeddedIn(whole reflect.Value, base reflect.Type) (reflect.Value, bool) {
	if whole.Kind() != reflect.Pointer || whole.IsNil() || whole.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, false
	}
	p, err := planOf(whole.Type().Elem())
	if err != nil {
		return reflect.Value{}, false
	}
	index, ok := p.embeds[base]
	if !ok {
		return reflect.Value{}, false
	}
	return whole.Elem().FieldByIndex(index).Addr(), true
}
