// Package metadatafile reads the files of metadata that a benchmark ships: JSON,
// or CSV with a header row (CUBE, section 6.4).
package metadatafile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/exception"
	"github.com/proctor-run/proctor/internal/bounded"
	"github.com/proctor-run/proctor/value"
)

// Find reads NAME.json, else NAME.csv. Without files, or when there is neither,
// the error is [fs.ErrNotExist].
func Find(files fs.FS, name string) (data []byte, file string, err error) {
	if files == nil {
		return nil, "", fs.ErrNotExist
	}
	for _, ext := range []string{".json", ".csv"} {
		data, err = read(files, name+ext)
		if !errors.Is(err, fs.ErrNotExist) {
			return data, name + ext, err
		}
	}
	return nil, "", err
}

// maxFile bounds a file of metadata, in bytes: benchmarks of many thousand tasks have
// some hundred megabytes at most.
const maxFile = 1 << 30

// read reads a regular file, which must not be too large. What is none might never end.
func read(files fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(files, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading %q: %w", name, err)
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "open", Path: name, Err: bounded.ErrNotRegular}
	case info.Size() > maxFile:
		return nil, fmt.Errorf("reading %q: %w: more than %d bytes", name, bounded.ErrTooLarge, maxFile)
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return bounded.Read(f, maxFile)
}

// TasksFromJSON returns the tasks of an array, or of an object whose values they
// are.
func TasksFromJSON(data []byte) (value.List, error) {
	v, err := value.Decode(data)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case value.List:
		return v, nil
	case *value.Object:
		var items value.List
		for _, item := range v.All() {
			items = append(items, item)
		}
		return items, nil
	}
	return nil, exception.Errorf(exception.ValueError, "task_metadata JSON must be a list or dict, got %s", value.TypeName(v))
}

// TasksFromCSV returns the tasks of a table. Empty cells are missing fields;
// container_config is JSON.
func TasksFromCSV(data []byte) (value.List, error) {
	rows, err := readCSV(data)
	if err != nil {
		return nil, err
	}
	items := make(value.List, len(rows))
	for i, row := range rows {
		item, err := rowObject(row, []string{"container_config"}, []string{"recommended_max_steps"})
		if err != nil {
			return nil, fmt.Errorf("task %d: %w", i, err)
		}
		items[i] = item
	}
	return items, nil
}

// BenchmarkFromCSV returns the benchmark of a table of exactly one row; file is
// its name, for messages.
func BenchmarkFromCSV(file string, data []byte) (*value.Object, error) {
	rows, err := readCSV(data)
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, exception.Errorf(exception.ValueError, "benchmark_metadata CSV '%s' has no data rows", file)
	case len(rows) > 1:
		return nil, exception.Errorf(exception.ValueError, "benchmark_metadata CSV '%s' must have exactly one data row, found more", file)
	}
	return rowObject(rows[0], []string{"authors", "tags", "requirements"}, []string{"num_tasks"})
}

// cell is one cell of a table that is not empty.
type cell struct{ column, text string }

// readCSV returns the cells of each row that are not empty.
func readCSV(data []byte) ([][]cell, error) {
	in := csv.NewReader(strings.NewReader(string(data)))
	in.FieldsPerRecord = -1
	in.LazyQuotes = true
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the table's header: %w", err)
	}
	var rows [][]cell
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the table: %w", err)
		}
		var row []cell
		for i, text := range record {
			if i < len(header) && text != "" {
				row = append(row, cell{header[i], text})
			}
		}
		rows = append(rows, row)
	}
}

// rowObject returns a row as an object: text, but for the columns of JSON and of
// ints.
func rowObject(row []cell, jsonColumns, intColumns []string) (*value.Object, error) {
	out := value.NewObject(len(row))
	for _, c := range row {
		v := value.Value(value.Str(c.text))
		var err error
		switch {
		case slices.Contains(jsonColumns, c.column):
			v, err = value.DecodeText(c.text)
		case slices.Contains(intColumns, c.column):
			v, err = value.ParseInt(c.text)
		}
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.column, err)
		}
		out.Set(c.column, v)
	}
	return out, nil
}
