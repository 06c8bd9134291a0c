/* A net plugin for NCCL that offers no device: -DV4, -DV6 and -DV8 choose what it exports.
   The first three members are the same in every version (NVIDIA/nccl, ext-net/README.md). */
typedef int (*call)(void *);
struct net { const char *name; call init, devices; void *rest[32]; };

static int init(void *log) { (void)log; return 0; }
static int devices(void *count) { *(int *)count = 0; return 0; }

#ifdef NEEDS_MORE
extern int tfabric_open(void);
int harp_open(void) { return tfabric_open(); }
#endif
#ifdef V4
struct net ncclNetPlugin_v4 = {"Stub", init, devices, {0}};
#endif
#ifdef V6
struct net ncclNetPlugin_v6 = {"Stub", init, devices, {0}};
#endif
#ifdef V8
struct net ncclNetPlugin_v8 = {"Stub", init, devices, {0}};
#endif
