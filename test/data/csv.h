/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.h - a table of plain values, comma separated, with a header: what the traces use. No quotes, no escapes.
 * The file is read whole; fields point into it until csv_close(). A file that is missing or strange ends the program.
 */
#ifndef FROND_DATA_CSV_H
#define FROND_DATA_CSV_H

#include <stdbool.h>
#include <stdint.h>

#define CSV_FIELDS_MAX 16u

struct csv {
	const char *path;
	char *text, *next; /* next: the row that csv_row() will read */
	uint32_t line;
	uint32_t count;              /* fields of the row that was read */
	char *field[CSV_FIELDS_MAX]; /* NUL-terminated */
};

/* header: what the first line starts with. */
void csv_open(struct csv *csv, const char *path, const char *header);
/* The next row; false at the end. Fewer fields than the header names end the program. */
bool csv_row(struct csv *csv);
uint32_t csv_number(const struct csv *csv, uint32_t field);
void csv_close(struct csv *csv);

#endif
