"""The generator: it must notice a function without tags, and lay structs out as written here by hand."""

import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import abi_parser
import generate

HEADER = """/* A contract. */
#ifndef X_H
#define X_H
#include <stdint.h>

/* ---- 1. Things ------------------------------------------------ */

/* A pair. Frozen: 24 bytes. */
typedef struct pair {
  uint8_t kind; /* which */
  uint64_t first, second;
} pair;

/* A table. [thread: any] */
#define TABLE_NAME "table"
typedef struct table {
  uint64_t struct_size;
  uint32_t flag;
  /* Does it. [state: open] */
  int32_t (*run)(const pair* value, uint32_t count);
  char name[6];
  void (*stop)(void); /* Ends it. */
} table;

#endif
"""


class GeneratorTest(unittest.TestCase):
    def setUp(self):
        self.sections = abi_parser.parse(HEADER)

    def test_fields_carry_their_comments(self):
        pair, table = abi_parser.structs(self.sections)
        self.assertEqual([(f.name, f.type, f.comment) for f in pair.fields],
                         [("kind", "uint8_t", "which"), ("first", "uint64_t", ""), ("second", "uint64_t", "")])
        self.assertTrue(pair.frozen)
        self.assertFalse(table.frozen)
        self.assertEqual(table.fields[4].comment, "Ends it.")

    def test_layout_has_padding_before_and_behind(self):
        layouts = abi_parser.Layouts(self.sections)
        self.assertEqual(layouts.of("pair"), (24, 8, [("kind", 0, 1), ("first", 8, 8), ("second", 16, 8)]))
        self.assertEqual(layouts.of("table"),
                         (40, 8, [("struct_size", 0, 8), ("flag", 8, 4), ("run", 16, 8), ("name", 24, 6), ("stop", 32, 8)]))

    def test_a_function_without_a_tag_is_named(self):
        self.assertEqual(generate.untagged(self.sections), ["abi.h:22: table.stop has no [state: ...] tag"])

    def test_something_unknown_is_an_error_and_not_skipped(self):
        with self.assertRaises(abi_parser.AbiError):
            abi_parser.parse(HEADER.replace("typedef struct pair", "template <class T> struct pair"))


if __name__ == "__main__":
    unittest.main()
