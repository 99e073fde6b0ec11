/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool tally_that(struct tally *tally, bool holds, const char *format, ...)
{
	if (holds) {
		tally->passed++;
		return true;
	}
	tally->failed++;
	va_list args;
	va_start(args, format);
	fputs("failed: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return false;
}

void data_refuse(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("traces: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(2);
}
