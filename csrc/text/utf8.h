/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - where characters end. Owns nothing; knows well-formed UTF-8 (no overlong forms, no surrogates, at most
 * U+10FFFF) and nothing about what the characters mean.
 */
#ifndef FROND_TEXT_UTF8_H
#define FROND_TEXT_UTF8_H

#include <stdint.h>

/* Bytes of the well-formed character at text[0..left): 1 … 4; 0 when there is none. */
uint32_t utf8_length(const char *text, uint64_t left);

/* Offset of the first byte of text[0..len) that is not UTF-8; len when all of it is. */
uint64_t utf8_valid_until(const char *text, uint64_t len);

#endif
