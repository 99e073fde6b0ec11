/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - runs a fuzz target over kept inputs without libFuzzer, so that the corpus is a plain test under any
 * compiler: fuzz_NAME FOLDER…. Prints each input before it runs: the last one named is the one that a crash is about.
 */
#include "fuzz.h"

#include <dirent.h>

enum { INPUT_BYTES_MAX = 1 << 20, PATH_BYTES_MAX = 4096 };

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Without ".", ".." and other hidden ones; sorted, so that every run is the same. The caller frees all of it. */
static char **names_in(const char *folder, size_t *count)
{
	DIR *dir = opendir(folder);
	char **names = NULL;
	const struct dirent *entry;
	*count = 0;
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		names = realloc(names, (*count + 1) * sizeof *names);
		MUST(names != NULL);
		names[*count] = strdup(entry->d_name);
		MUST(names[(*count)++] != NULL);
	}
	if (dir != NULL)
		closedir(dir);
	if (*count > 0)
		qsort(names, *count, sizeof *names, by_name);
	return names;
}

/* In memory of exactly its size, so that a read past the end is seen. */
static void run_file(const char *path)
{
	static uint8_t whole[INPUT_BYTES_MAX];
	FILE *file = fopen(path, "rb");
	MUST(file != NULL);
	size_t size = fread(whole, 1, sizeof whole, file);
	fclose(file);
	uint8_t *input = malloc(size > 0 ? size : 1);
	MUST(input != NULL);
	memcpy(input, whole, size);
	LLVMFuzzerTestOneInput(input, size);
	free(input);
}

int main(int argc, char **argv)
{
	uint32_t ran = 0;
	for (int i = 1; i < argc; i++) {
		size_t count;
		char **names = names_in(argv[i], &count);
		for (size_t at = 0; at < count; at++) {
			char path[PATH_BYTES_MAX];
			int len = snprintf(path, sizeof path, "%s/%s", argv[i], names[at]);
			MUST(len > 0 && len < PATH_BYTES_MAX);
			printf("%s\n", path);
			fflush(stdout);
			run_file(path);
			ran++;
			free(names[at]);
		}
		free(names);
	}
	if (ran == 0) {
		fprintf(stderr, "usage: %s FOLDER…, with inputs in them\n", argv[0]);
		return 2;
	}
	printf("%u passed, 0 failed\n", (unsigned)ran);
	return 0;
}
