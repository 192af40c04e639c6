package cube

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/proctor-run/proctor/value"
)

// TaskMetadataFromJSON reads an array of task metadata, or an object whose
// values they are. Of an id that comes twice the last counts, at the first
// place (CUBE, section 6.4).
func (r *Registry) TaskMetadataFromJSON(data []byte) ([]Metadata, error) {
	v, err := value.Decode(data)
	if err != nil {
		return nil, err
	}
	var items List
	switch v := v.(type) {
	case List:
		items = v
	case *Object:
		for _, item := range v.All() {
			items = append(items, item)
		}
	default:
		return nil, ValueErrorf("task_metadata JSON must be a list or dict, got %s", value.TypeName(v))
	}
	return r.taskMetadata(items)
}

func (r *Registry) taskMetadata(items List) ([]Metadata, error) {
	out := make([]Metadata, 0, len(items))
	at := make(map[string]int, len(items))
	for i, item := range items {
		m, err := FromValue[Metadata](r, item)
		if err != nil {
			return nil, fmt.Errorf("task %d: %w", i, err)
		}
		id := m.Base().ID
		if first, again := at[id]; again {
			out[first] = m
			continue
		}
		at[id] = len(out)
		out = append(out, m)
	}
	return out, nil
}

// TaskMetadataFromCSV reads a table of task metadata with a header row. Empty
// cells are missing fields; container_config is JSON.
func (r *Registry) TaskMetadataFromCSV(data []byte) ([]Metadata, error) {
	rows, err := readCSV(data)
	if err != nil {
		return nil, err
	}
	items := make(List, len(rows))
	for i, row := range rows {
		item, err := rowObject(row, []string{"container_config"}, []string{"recommended_max_steps"})
		if err != nil {
			return nil, fmt.Errorf("task %d: %w", i, err)
		}
		items[i] = item
	}
	return r.taskMetadata(items)
}

// BenchmarkMetadataFromJSON reads one object.
func (r *Registry) BenchmarkMetadataFromJSON(data []byte) (*BenchmarkMetadata, error) {
	return Load[*BenchmarkMetadata](r, data)
}

// BenchmarkMetadataFromCSV reads a table of exactly one row; file is its name,
// for messages.
func (r *Registry) BenchmarkMetadataFromCSV(file string, data []byte) (*BenchmarkMetadata, error) {
	rows, err := readCSV(data)
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, ValueErrorf("benchmark_metadata CSV '%s' has no data rows", file)
	case len(rows) > 1:
		return nil, ValueErrorf("benchmark_metadata CSV '%s' must have exactly one data row, found more", file)
	}
	item, err := rowObject(rows[0], []string{"authors", "tags", "requirements"}, []string{"num_tasks"})
	if err != nil {
		return nil, err
	}
	return FromValue[*BenchmarkMetadata](r, item)
}

type csvCell struct{ column, text string }

// readCSV returns the cells of each row that are not empty.
func readCSV(data []byte) ([][]csvCell, error) {
	in := csv.NewReader(strings.NewReader(string(data)))
	in.FieldsPerRecord = -1
	in.LazyQuotes = true
	header, err := in.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rows [][]csvCell
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		var row []csvCell
		for i, cell := range record {
			if i < len(header) && cell != "" {
				row = append(row, csvCell{header[i], cell})
			}
		}
		rows = append(rows, row)
	}
}

func rowObject(row []csvCell, jsonColumns, intColumns []string) (*Object, error) {
	out := value.NewObject(len(row))
	for _, c := range row {
		v := Value(Str(c.text))
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
