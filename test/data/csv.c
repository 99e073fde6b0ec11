/* SPDX-License-Identifier: Apache-2.0 */
#include "csv.h"

#include "tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CSV_BYTES_MAX (64l << 20)

static void split(struct csv *csv)
{
	char *at = csv->next, *end = at + strcspn(at, "\r\n");
	csv->next = end + strspn(end, "\r\n");
	*end = 0;
	csv->line++;
	csv->count = 0;
	while (at != NULL) {
		if (csv->count == CSV_FIELDS_MAX)
			data_refuse("%s:%u: has more than %u fields", csv->path, csv->line, CSV_FIELDS_MAX);
		csv->field[csv->count++] = at;
		at = strchr(at, ',');
		if (at != NULL)
			*at++ = 0;
	}
}

void csv_open(struct csv *csv, const char *path, const char *header)
{
	*csv = (struct csv){.path = path};
	FILE *file = fopen(path, "rb");
	if (file == NULL)
		data_refuse("%s: is not there; the traces are read in place and not part of this repository", path);
	long bytes = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
	if (bytes < 0 || bytes > CSV_BYTES_MAX || fseek(file, 0, SEEK_SET) != 0)
		data_refuse("%s: cannot be read as a table", path);
	csv->text = malloc((size_t)bytes + 1);
	if (csv->text == NULL || fread(csv->text, 1, (size_t)bytes, file) != (size_t)bytes)
		data_refuse("%s: cannot be read", path);
	fclose(file);
	csv->text[bytes] = 0;
	csv->next = csv->text;
	if (strncmp(csv->text, header, strlen(header)) != 0)
		data_refuse("%s:1: should start with %s", path, header);
	split(csv);
}

bool csv_row(struct csv *csv)
{
	uint32_t before = csv->count; /* the header's, or of a row that was compared with it */
	if (*csv->next == 0)
		return false;
	split(csv);
	if (csv->count != before)
		data_refuse("%s:%u: has %u fields, the line before %u", csv->path, csv->line, csv->count, before);
	return true;
}

uint32_t csv_number(const struct csv *csv, uint32_t field)
{
	char *end = NULL;
	const char *text = field < csv->count ? csv->field[field] : "";
	unsigned long value = strtoul(text, &end, 10);
	if (*text == 0 || *text == '-' || *end != 0 || value > UINT32_MAX)
		data_refuse("%s:%u: field %u should be a number", csv->path, csv->line, field + 1);
	return (uint32_t)value;
}

void csv_close(struct csv *csv)
{
	free(csv->text);
	csv->text = csv->next = NULL;
}
