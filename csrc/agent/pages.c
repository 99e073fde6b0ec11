/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "agent/pages.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Code that the loader has changed differs from its file, and dropping it would lose that. */
static bool relocated_code(const struct dl_phdr_info *object)
{
	for (uint32_t i = 0; i < object->dlpi_phnum; i++) {
		if (object->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		const ElfW(Dyn) *entry = (const void *)(uintptr_t)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
		for (; entry->d_tag != DT_NULL; entry++)
			if (entry->d_tag == DT_TEXTREL ||
			    (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL)))
				return true;
	}
	return false;
}

static int object_drop(struct dl_phdr_info *object, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	if (object->dlpi_name[0] != '/' || relocated_code(object)) /* the kernel's own object is no file */
		return 0;
	for (uint32_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		if (part->p_type != PT_LOAD || (part->p_flags & PF_W) != 0)
			continue;
		uintptr_t begin = (object->dlpi_addr + part->p_vaddr) & ~(page - 1);
		uintptr_t end = (object->dlpi_addr + part->p_vaddr + part->p_filesz + page - 1) & ~(page - 1);
		madvise((void *)begin, end - begin, MADV_DONTNEED);
	}
	return 0;
}

void pages_drop(void)
{
	dl_iterate_phdr(object_drop, NULL);
}
