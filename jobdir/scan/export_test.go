package scan

// ScanRecord gives tests the fast reader alone.
func ScanRecord(data []byte) (FileRecord, bool) {
	return scanRecord(data, &interner{})
}
