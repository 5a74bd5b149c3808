/* Words that other libraries make macros, for a program that includes those first. */

/* X11/Xlib.h */
#define Status int
#define Bool int
#define True 1
#define False 0
#define None 0L
#define Always 2
#define Success 0
#define Above 0
#define Below 1
#define Complex 0
#define CurrentTime 0L
#define GrayScale 1
#define Unsorted 0

/* windows.h, and what it includes */
#define small char
#define near
#define far
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define interface struct
#define hyper long
#define cdecl
#define pascal
#define ERROR 0
#define NO_ERROR 0L
#define DELETE 0x10000L
#define IN
#define OUT
#define OPTIONAL
#define CONST const
#define VOID void
#define TRUE 1
#define FALSE 0
#define THIS void
#define STRICT 1
#define GetObject GetObjectA
#define Yield()

/* Qt's, complex.h's, sys/sysmacros.h's, and those of a compiler or a project */
#define signals public
#define slots
#define emit
#define forever for (;;)
#define I _Complex_I
#define major(device) gnu_dev_major(device)
#define minor(device) gnu_dev_minor(device)
#define linux 1
#define unix 1
#define check(x) (void)(x)
#define verify(x) (void)(x)
#define likely(x) (x)
#define unlikely(x) (x)
#define debug
#define DEBUG 1
