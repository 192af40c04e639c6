package pyvalue_test

import (
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/internal/pyvalue"
)

func ExampleDecode() {
	v, err := pyvalue.Decode([]byte(`{"reward": 1, "time": 1e-05, "reward": 1.0, "log": "\ud83d\ude00 \ud800"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pyvalue.Repr(v))
	fmt.Println(string(pyvalue.AppendPydantic(nil, v, 0)))
	fmt.Println(string(pyvalue.AppendDumps(nil, v, pyvalue.DumpsOptions{})))
	// Output:
	// {'reward': 1.0, 'time': 1e-05, 'log': '😀 \ud800'}
	// {"reward":1.0,"time":0.00001,"log":"😀 ���"}
	// {"reward": 1.0, "time": 1e-05, "log": "\ud83d\ude00 \ud800"}
}

func ExampleDecode_error() {
	_, err := pyvalue.Decode([]byte("{\n  'a': 1\n}"))
	fmt.Println(errors.Is(err, pyvalue.ValueError), err)
	// Output:
	// true Expecting property name enclosed in double quotes: line 2 column 3 (char 4)
}

func ExampleSum() {
	tenth := pyvalue.Float(0.1)
	items := make([]pyvalue.Number, 10)
	plain := 0.0
	for i := range items {
		items[i] = tenth
		plain += 0.1
	}
	total, err := pyvalue.Sum(items)
	fmt.Println(pyvalue.Repr(total), err, plain)
	// Output:
	// 1.0 <nil> 0.9999999999999999
}

func ExampleDiv() {
	q, _ := pyvalue.Div(pyvalue.NewInt(53), pyvalue.NewInt(89))
	fmt.Println(pyvalue.Repr(q))
	_, err := pyvalue.Div(q, pyvalue.NewInt(0))
	fmt.Println(errors.Is(err, pyvalue.ZeroDivisionError), err)
	// Output:
	// 0.5955056179775281
	// true float division by zero
}

func ExampleParseFloat() {
	f, _ := pyvalue.ParseFloat(" 1_0.5\n")
	fmt.Println(f)
	_, err := pyvalue.ParseFloat("0x1p3")
	fmt.Println(err)
	// Output:
	// 10.5
	// could not convert string to float: '0x1p3'
}

func ExampleObject() {
	var o pyvalue.Object
	o.Set("b", pyvalue.NewInt(2))
	o.Set("a", pyvalue.Null{})
	o.Set("b", pyvalue.Bool(true))
	for name, v := range o.All() {
		fmt.Println(name, pyvalue.Repr(v))
	}
	// Output:
	// b True
	// a None
}
