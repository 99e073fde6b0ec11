/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/driver.h"

#include "probe/probe.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

_Static_assert(DRIVER_CALL_COUNT <= 64, "probe_gpu.unsupported has a bit for each call");

bool driver_open(const char *path, struct driver *out, char *reason, uint32_t room)
{
	memset(out, 0, sizeof(*out));
	out->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (out->library == NULL) {
		const char *why = dlerror();
		snprintf(reason, room, "%s cannot be loaded: %s", path, why == NULL ? "no reason given" : why);
		return false;
	}
	void *found; /* POSIX: a data pointer that dlsym() gave holds a function's address; memcpy says so to C */
#define X(name)                                                                                                        \
	found = dlsym(out->library, #name);                                                                            \
	memcpy(&out->name, &found, sizeof(found));
	DRIVER_CALLS(X)
#undef X
	if (out->nvmlInit_v2 != NULL && out->nvmlShutdown != NULL && out->nvmlDeviceGetCount_v2 != NULL &&
	    out->nvmlDeviceGetHandleByIndex_v2 != NULL)
		return true;
	snprintf(reason, room, "%s is no NVML that we know: nvmlInit_v2 or what goes with it is missing", path);
	driver_close(out);
	return false;
}

void driver_close(struct driver *driver)
{
	if (driver->library != NULL)
		dlclose(driver->library);
	memset(driver, 0, sizeof(*driver));
}

const char *probe_call_name(uint32_t call)
{
	static const char *const names[] = {
#define X(name) #name,
		DRIVER_CALLS(X)
#undef X
	};
	return call < DRIVER_CALL_COUNT ? names[call] : NULL;
}
