package bootc

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// This file reads the part of GVariant's serialised form that ostree's files need: dictionaries a{sv} with strings, booleans and
// further dictionaries. See sections 2.5 and 3 of https://docs.gtk.org/glib/gvariant-specification-1.0.html.

var errVariant = errors.New("it is not a GVariant dictionary")

// variant is a value of a dictionary: its type, such as s, and its bytes.
type variant struct {
	kind string
	data []byte
}

// text returns the value of a string, or an empty text if it has another type or is not terminated.
func (v variant) text() string {
	if v.kind != "s" || len(v.data) == 0 || v.data[len(v.data)-1] != 0 {
		return ""
	}
	return string(v.data[:len(v.data)-1])
}

// isTrue reports whether the value is the boolean true.
func (v variant) isTrue() bool { return v.kind == "b" && bytes.Equal(v.data, []byte{1}) }

// dictionary reads a{sv}: entries of variable size, aligned to 8 bytes, followed by the offsets of
// their ends.
func dictionary(data []byte) (map[string]variant, error) {
	values := map[string]variant{}
	if len(data) == 0 {
		return values, nil
	}
	size := offsetSize(len(data))
	table, err := offset(data, len(data)-size, size)
	if err != nil || (len(data)-table)%size != 0 {
		return nil, errVariant
	}
	start := 0
	for pos := table; pos < len(data); pos += size {
		end, err := offset(data, pos, size)
		if err != nil || start > end || end > table {
			return nil, errVariant
		}
		key, value, err := entry(data[start:end])
		if err != nil {
			return nil, err
		}
		values[key], start = value, (end+7)&^7
	}
	return values, nil
}

// entry reads {sv}: a string, a variant aligned to 8, and the offset at which the string ends.
func entry(data []byte) (string, variant, error) {
	size := offsetSize(len(data))
	end, err := offset(data, len(data)-size, size)
	from := (end + 7) &^ 7
	if err != nil || end == 0 || data[end-1] != 0 || from > len(data)-size {
		return "", variant{}, errVariant
	}
	// A variant is its value, a zero and its type.
	value := data[from : len(data)-size]
	zero := bytes.LastIndexByte(value, 0)
	if zero < 0 {
		return "", variant{}, errVariant
	}
	return string(data[:end-1]), variant{kind: string(value[zero+1:]), data: value[:zero]}, nil
}

// commitMetadata reads the first member of a commit, (a{sv}aya(say)sstayay). The last offset is its
// end.
func commitMetadata(data []byte) (map[string]variant, error) {
	size := offsetSize(len(data))
	end, err := offset(data, len(data)-size, size)
	if err != nil {
		return nil, err
	}
	return dictionary(data[:end])
}

// offset reads a little-endian number of size bytes, which must be a position in the data.
func offset(data []byte, pos, size int) (int, error) {
	if pos < 0 || pos+size > len(data) {
		return 0, errVariant
	}
	var whole [8]byte
	copy(whole[:], data[pos:pos+size])
	number := binary.LittleEndian.Uint64(whole[:])
	if number > uint64(len(data)) {
		return 0, errVariant
	}
	return int(number), nil
}

// offsetSize returns the number of bytes of an offset in a container of the given size.
func offsetSize(length int) int {
	switch {
	case length <= 0xff:
		return 1
	case length <= 0xffff:
		return 2
	}
	return 4
}
