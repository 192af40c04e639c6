package value_test

import (
	"errors"
	"fmt"

	"github.com/proctor-run/proctor/value"
)

func ExampleDecode() {
	v, err := value.Decode([]byte(`{"reward": 1, "time": 1e-05, "reward": 1.0, "log": "\ud83d\ude00 \ud800"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(value.Repr(v))
	fmt.Println(string(value.AppendPydantic(nil, v, 0)))
	fmt.Println(string(value.AppendDumps(nil, v, value.DumpsOptions{})))
	// Output:
	// {'reward': 1.0, 'time': 1e-05, 'log': '😀 \ud800'}
	// {"reward":1.0,"time":0.00001,"log":"😀 ���"}
	// {"reward": 1.0, "time": 1e-05, "log": "\ud83d\ude00 \ud800"}
}

func ExampleDecode_error() {
	_, err := value.Decode([]byte("{\n  'a': 1\n}"))
	fmt.Println(errors.Is(err, value.ValueError), err)
	// Output:
	// true Expecting property name enclosed in double quotes: line 2 column 3 (char 4)
}

func ExampleSum() {
	tenth := value.Float(0.1)
	items := make([]value.Number, 10)
	plain := 0.0
	for i := range items {
		items[i] = tenth
		plain += 0.1
	}
	total, err := value.Sum(items)
	fmt.Println(value.Repr(total), err, plain)
	// Output:
	// 1.0 <nil> 0.9999999999999999
}

func ExampleDiv() {
	q, _ := value.Div(value.NewInt(53), value.NewInt(89))
	fmt.Println(value.Repr(q))
	_, err := value.Div(q, value.NewInt(0))
	fmt.Println(errors.Is(err, value.ZeroDivisionError), err)
	// Output:
	// 0.5955056179775281
	// true float division by zero
}

func ExampleParseFloat() {
	f, _ := value.ParseFloat(" 1_0.5\n")
	fmt.Println(f)
	_, err := value.ParseFloat("0x1p3")
	fmt.Println(err)
	// Output:
	// 10.5
	// could not convert string to float: '0x1p3'
}

func ExampleObject() {
	var o value.Object
	o.Set("b", value.NewInt(2))
	o.Set("a", value.Null{})
	o.Set("b", value.Bool(true))
	for name, v := range o.All() {
		fmt.Println(name, value.Repr(v))
	}
	// Output:
	// b True
	// a None
}
