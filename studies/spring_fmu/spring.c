/* The functions of FMI 2.0.4 for the model in spring_model.h: co-simulation and model exchange. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include "spring_model.h"

#define EXPORT __attribute__((visibility("default")))
typedef void *Component;
typedef const char *String;
typedef unsigned int Reference;
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL, PENDING } Status;
typedef void (*Logger)(void *, String, Status, String, String, ...);
typedef struct {
  Logger logger;
  void *(*allocate)(size_t, size_t);
  void (*release)(void *);
  void (*finished)(void *, Status);
  void *environment;
} Callbacks;
typedef struct {
  int discrete, terminate, nominals, values, defined;
  double time;
} EventInfo;
typedef struct {
  double v[COUNT];
  const Callbacks *callbacks;
} Spring;

EXPORT String fmi2GetTypesPlatform(void) { return "default"; }
EXPORT String fmi2GetVersion(void) { return "2.0"; }
EXPORT Status fmi2SetDebugLogging(Component c, int on, size_t n, const String *categories) { return OK; }

EXPORT Component fmi2Instantiate(String name, int type, String guid, String resources, const Callbacks *callbacks,
                                 int visible, int logging) {
  Spring *spring = calloc(1, sizeof(Spring));
  memcpy(spring->v, START, sizeof START);
  spring->callbacks = callbacks;
  return spring;
}
EXPORT void fmi2FreeInstance(Component c) { free(c); }
EXPORT Status fmi2SetupExperiment(Component c, int tolerant, double tolerance, double start, int ends, double stop) {
  return OK;
}
EXPORT Status fmi2EnterInitializationMode(Component c) { return OK; }
EXPORT Status fmi2ExitInitializationMode(Component c) {
  derive(((Spring *)c)->v);
  return OK;
}
EXPORT Status fmi2Terminate(Component c) { return OK; }
EXPORT Status fmi2Reset(Component c) {
  memcpy(((Spring *)c)->v, START, sizeof START);
  return OK;
}

EXPORT Status fmi2GetReal(Component c, const Reference r[], size_t n, double value[]) {
  double *v = ((Spring *)c)->v;
  derive(v);
  for (size_t i = 0; i < n; i++) value[i] = v[r[i]];
  return OK;
}
EXPORT Status fmi2SetReal(Component c, const Reference r[], size_t n, const double value[]) {
  for (size_t i = 0; i < n; i++) ((Spring *)c)->v[r[i]] = value[i];
  return OK;
}

/* The spring breaks where its force is above its strength: no result. */
EXPORT Status fmi2DoStep(Component c, double time, double size, int final) {
  Spring *spring = c;
  advance(spring->v, size);
  double force = fabs(spring->v[K] * spring->v[STRETCH]);
  if (force > spring->v[STRENGTH]) {
    spring->callbacks->logger(spring->callbacks->environment, "spring", ERROR, "error",
                              "the spring breaks at %g N", force);
    return ERROR;
  }
  return OK;
}

/* Model exchange. */
EXPORT Status fmi2EnterEventMode(Component c) { return OK; }
EXPORT Status fmi2NewDiscreteStates(Component c, EventInfo *info) {
  memset(info, 0, sizeof *info);
  return OK;
}
EXPORT Status fmi2EnterContinuousTimeMode(Component c) { return OK; }
EXPORT Status fmi2CompletedIntegratorStep(Component c, int final, int *event, int *terminate) {
  *event = *terminate = 0;
  return OK;
}
EXPORT Status fmi2SetTime(Component c, double time) { return OK; }
EXPORT Status fmi2SetContinuousStates(Component c, const double x[], size_t n) {
  for (size_t i = 0; i < n; i++) ((Spring *)c)->v[STATES[i]] = x[i];
  return OK;
}
EXPORT Status fmi2GetContinuousStates(Component c, double x[], size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = ((Spring *)c)->v[STATES[i]];
  return OK;
}
EXPORT Status fmi2GetDerivatives(Component c, double rate[], size_t n) {
  double *v = ((Spring *)c)->v;
  derive(v);
  for (size_t i = 0; i < n; i++) rate[i] = v[RATES[i]];
  return OK;
}
EXPORT Status fmi2GetEventIndicators(Component c, double z[], size_t n) { return OK; }
EXPORT Status fmi2GetNominalsOfContinuousStates(Component c, double x[], size_t n) {
  for (size_t i = 0; i < n; i++) x[i] = 1.0;
  return OK;
}

/* Functions of capabilities that modelDescription.xml does not claim. */
#define ABSENT(name) EXPORT Status name(void) { return ERROR; }
ABSENT(fmi2GetInteger) ABSENT(fmi2GetBoolean) ABSENT(fmi2GetString)
ABSENT(fmi2SetInteger) ABSENT(fmi2SetBoolean) ABSENT(fmi2SetString)
ABSENT(fmi2GetFMUstate) ABSENT(fmi2SetFMUstate) ABSENT(fmi2FreeFMUstate)
ABSENT(fmi2SerializedFMUstateSize) ABSENT(fmi2SerializeFMUstate) ABSENT(fmi2DeSerializeFMUstate)
ABSENT(fmi2GetDirectionalDerivative) ABSENT(fmi2SetRealInputDerivatives) ABSENT(fmi2GetRealOutputDerivatives)
ABSENT(fmi2CancelStep) ABSENT(fmi2GetStatus) ABSENT(fmi2GetRealStatus) ABSENT(fmi2GetIntegerStatus)
ABSENT(fmi2GetStringStatus)
EXPORT Status fmi2GetBooleanStatus(Component c, int kind, int *value) {
  *value = 0;
  return OK;
}
