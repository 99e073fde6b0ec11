/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages.h - gives back what only starting needed. libcurl brings some forty libraries; loading them touches megabytes of
 * their code and tables that are never used again, but count as ours until the kernel runs short.
 */
#ifndef FROND_AGENT_PAGES_H
#define FROND_AGENT_PAGES_H

/* Drops the read-only pages of every loaded library, at any time and from any thread; those that are used again come back from the page cache. */
void pages_drop(void);

#endif
