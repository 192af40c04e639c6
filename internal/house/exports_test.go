package house

import (
	"go/token"
	"go/types"
	"strings"
	"sync"
	"testing"

	"github.com/proctor-run/proctor/internal/house/source"
)

// load checks all packages of the module once.
var load = sync.OnceValues(func() ([]source.Package, error) { return source.Load("../..") })

// packagesOfModule are the loaded packages.
func packagesOfModule(t *testing.T) []source.Package {
	t.Helper()
	Watch(t, "../..")
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPublicSignatures: who imports a public package can name every type that its
// functions, methods and fields have.
func TestPublicSignatures(t *testing.T) {
	t.Parallel()
	for _, l := range packagesOfModule(t) {
		if !l.Public() {
			continue
		}
		for name, typ := range signatures(l.Types) {
			if p := internalIn(typ); p != "" {
				t.Errorf("%s.%s has a type of %s: %s", l.Path, name, p, typ)
			}
		}
	}
}

// signatures returns the types that a package shows to those who import it, by
// what has them.
func signatures(p *types.Package) map[string]types.Type {
	out := map[string]types.Type{}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		tn, ok := o.(*types.TypeName)
		if !ok {
			out[name] = o.Type()
			continue
		}
		if tn.IsAlias() {
			out[name] = types.Unalias(tn.Type())
			continue
		}
		ofNamed(out, name, tn.Type().(*types.Named))
	}
	return out
}

// ofNamed adds what a declared type shows: its constraints, exported fields and
// methods.
func ofNamed(out map[string]types.Type, name string, named *types.Named) {
	for i := range named.TypeParams().Len() {
		out[name+"["+named.TypeParams().At(i).Obj().Name()+"]"] = named.TypeParams().At(i).Constraint()
	}
	for i := range named.NumMethods() {
		if m := named.Method(i); m.Exported() {
			out[name+"."+m.Name()] = m.Type()
		}
	}
	switch u := named.Underlying().(type) {
	case *types.Struct:
		for i := range u.NumFields() {
			if f := u.Field(i); f.Exported() {
				out[name+"."+f.Name()] = f.Type()
			}
		}
	case *types.Interface:
		for i := range u.NumExplicitMethods() {
			if m := u.ExplicitMethod(i); m.Exported() {
				out[name+"."+m.Name()] = m.Type()
			}
		}
		for i := range u.NumEmbeddeds() {
			out[name+"."+u.EmbeddedType(i).String()] = u.EmbeddedType(i)
		}
	default:
		out[name] = u
	}
}

// internalIn returns the path of an internal package that a type is written
// with; "" for none.
func internalIn(typ types.Type) string {
	found := ""
	types.TypeString(typ, func(p *types.Package) string {
		if path := p.Path(); strings.HasPrefix(path, source.Module) && strings.Contains(path, "/internal/") {
			found = strings.TrimPrefix(path, source.Module)
		}
		return p.Path()
	})
	return found
}

func TestInternalTypesAreFound(t *testing.T) {
	t.Parallel()
	hidden := types.NewPackage(source.Module+"internal/hidden", "hidden")
	typ := types.NewNamed(types.NewTypeName(token.NoPos, hidden, "T", nil), types.NewStruct(nil, nil), nil)
	p := types.NewPackage(source.Module+"p", "p")
	param := types.NewTuple(types.NewVar(token.NoPos, p, "x", types.NewSlice(types.NewPointer(typ))))
	f := types.NewFunc(token.NoPos, p, "F", types.NewSignatureType(nil, nil, nil, param, nil, false))
	field := types.NewField(token.NoPos, p, "Hidden", typ, false)
	s := types.NewNamed(types.NewTypeName(token.NoPos, p, "S", nil), types.NewStruct([]*types.Var{field}, nil), nil)
	for _, o := range []types.Object{f, s.Obj(), types.NewVar(token.NoPos, p, "fine", types.Typ[types.Int])} {
		p.Scope().Insert(o)
	}
	got := signatures(p)
	for _, name := range []string{"F", "S.Hidden"} {
		if typ, ok := got[name]; !ok || internalIn(typ) != "internal/hidden" {
			t.Errorf("%s: an internal type is not seen in %v", name, typ)
		}
	}
	if len(got) != 2 {
		t.Errorf("signatures %v, want two", got)
	}
}
