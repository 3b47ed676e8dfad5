// Pages that are opened from a folder may start no workers; the search of the theme needs one. It runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.inside = frame.contentWindow
      window.addEventListener("message", event => {
        if (event.source !== this.inside) return
        const copy = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(copy)
        if (this.onmessage) this.onmessage(copy)
      })
      const own = message => parent.postMessage(message, "*")
      const load = (...urls) => urls.reduce((before, one) => before.then(() => new Promise(loaded => {
        const script = document.createElement("script")
        script.src = one
        script.onload = loaded
        document.body.appendChild(script)
      })), Promise.resolve())
      const page = this.inside.document
      page.open()
      page.write(`<html><body><script>postMessage = ${own}; importScripts = ${load}<\/script><script src="${url}"><\/script>`)
      page.close()
      this.ready = new Promise(loaded => { this.inside.onload = loaded })
    }
    postMessage(message) {
      const copy = new MessageEvent("message", { data: structuredClone(message) })
      this.ready.then(() => this.inside.dispatchEvent(copy))
    }
  }
}
