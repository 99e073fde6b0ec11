/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - a string as JSON writes it. Reading JSON is cJSON's and libyaml's affair.
 */
#ifndef FROND_TEXT_JSON_H
#define FROND_TEXT_JSON_H

#include "core/out.h"

/* Quoted and escaped; a byte that is no UTF-8 becomes U+FFFD, so the output always is. */
void json_string(struct out *out, const char *text, uint64_t len);

#endif
