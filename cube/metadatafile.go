package cube

import (
	"fmt"

	"github.com/proctor-run/proctor/cube/internal/metadatafile"
)

// TaskMetadataFromJSON reads an array of task metadata, or an object whose
// values they are. Of an id that comes twice the last counts, at the first
// place (CUBE, section 6.4).
func (r *Registry) TaskMetadataFromJSON(data []byte) ([]Metadata, error) {
	return r.taskMetadata(metadatafile.TasksFromJSON(data))
}

// TaskMetadataFromCSV reads a table of task metadata with a header row. Empty
// cells are missing fields; container_config is JSON.
func (r *Registry) TaskMetadataFromCSV(data []byte) ([]Metadata, error) {
	return r.taskMetadata(metadatafile.TasksFromCSV(data))
}

func (r *Registry) taskMetadata(items List, err error) ([]Metadata, error) {
	if err != nil {
		return nil, err
	}
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

// BenchmarkMetadataFromJSON reads one object.
func (r *Registry) BenchmarkMetadataFromJSON(data []byte) (*BenchmarkMetadata, error) {
	return Load[*BenchmarkMetadata](r, data)
}

// BenchmarkMetadataFromCSV reads a table of exactly one row; file is its name,
// for messages.
func (r *Registry) BenchmarkMetadataFromCSV(file string, data []byte) (*BenchmarkMetadata, error) {
	item, err := metadatafile.BenchmarkFromCSV(file, data)
	if err != nil {
		return nil, err
	}
	return FromValue[*BenchmarkMetadata](r, item)
}
